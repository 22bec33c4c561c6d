"""Bytes of sound files changed at random give a graph, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from phonebit.converter.importers.sources import ImportOptions, import_source
from phonebit.errors import PhoneBitError
from support.onnx_models import halves, integers, model, single

FIXTURES = Path(__file__).with_name("fixtures")
LARGEST_SEED = 40_000
MAP = (1, 4, 6, 8)
ONE, HALF, BITS = (np.array(number, np.float32) for number in (1, 0.5, 4))
QUANT = {"domain": "qonnx.custom_op.general", "signed": 1, "narrow": 0}


def of_onnx() -> list[bytes]:
    statistics = [np.abs(halves(4)) + 1 for _ in range(4)]
    models = [
        single("Conv", MAP, halves(5, 4, 3, 3), pads=[1] * 4, strides=[1, 2]),
        single("ConvTranspose", MAP, halves(4, 5, 2, 2), strides=[2, 2]),
        single("MaxPool", MAP, kernel_shape=[2, 2], strides=[2, 2]),
        single("Gemm", (1, 4), halves(5, 4), transB=1),
        single("Resize", MAP, None, np.array([1, 1, 2, 2], np.float32), mode="nearest"),
        single("BatchNormalization", MAP, *statistics),
        single("Slice", MAP, integers(1), integers(3), integers(2), integers(1)),
        single("Reshape", MAP, integers(1, -1)),
        single("Expand", MAP, integers(1, 4, 6, 8)),
        single("Pad", MAP, integers(0, 0, 1, 1, 0, 0, 1, 1)),
        single("Softmax", MAP, axis=1),
        single("ReduceMean", MAP, axes=[2, 3]),
        single("Einsum", MAP, halves(4, 5), equation="nchw,cd->ndhw"),
        single("Gather", MAP, integers(1, 2), axis=1),
        single("Transpose", MAP, perm=[0, 2, 3, 1]),
        single("DepthToSpace", MAP, blocksize=2),
        single("Quant", MAP, HALF, ONE, BITS, **QUANT),
    ]
    return [made.SerializeToString() for made in models]


def of_fixtures(suffix: str) -> Callable[[], list[bytes]]:
    def read() -> list[bytes]:
        files = sorted(FIXTURES.rglob(f"*{suffix}"))
        return [file.read_bytes() for file in files if file.stat().st_size < LARGEST_SEED]

    return read


SEEDS = {".onnx": of_onnx, ".tflite": of_fixtures(".tflite"), ".h5": of_fixtures(".h5")}


def import_mutants(suffix: str, count: int, seed: int, path: Path) -> None:
    good, rng = SEEDS[suffix](), np.random.default_rng(seed)
    assert good
    refused = 0
    for number in range(count):
        content = bytearray(good[number % len(good)])
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(len(content)))
            content[place] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            import_source(path, ImportOptions())
        except PhoneBitError as error:
            assert "bug in PhoneBit" not in str(error), (seed, number, error)
            refused += 1
    assert refused > count // 10


@pytest.mark.parametrize(("suffix", "count"), [(".onnx", 170), (".tflite", 20), (".h5", 30)])
def test_damaged_files_are_never_called_bugs(suffix: str, count: int, tmp_path: Path) -> None:
    import_mutants(suffix, count, 0, tmp_path / f"damaged{suffix}")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEEDS)
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_damaged_files_are_never_called_bugs(suffix: str, seed: int, tmp_path: Path) -> None:
    import_mutants(suffix, 1000, seed, tmp_path / f"damaged{suffix}")


def test_a_chain_of_a_thousand_operators_is_no_recursion() -> None:
    for op, constant in (("Add", ["c"]), ("Relu", [])):
        nodes = [
            helper.make_node(op, [f"v{number}", *constant], [f"v{number + 1}"])
            for number in range(1200)
        ]
        made = model(nodes, {"v0": (1, 4)}, constants={"c": HALF}, outputs=["v1200"])
        assert import_source(made, ImportOptions()).outputs
