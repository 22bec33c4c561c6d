"""The modules of packaging/web.py in Node.js: golden files, and files that are none.

PHONEBIT_WEB names the folder that packaging/web.py has filled.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit.format.bits import pack_signs
from support.node_script import answer_of

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "v1"
FILES = sorted(GOLDEN.glob("*.pbit"))
ISAS = ("wasm_simd", "scalar")


@pytest.fixture(scope="module", params=["single", "threads"])
def module(request: pytest.FixtureRequest) -> Path:
    folder, node = os.environ.get("PHONEBIT_WEB"), shutil.which("node")
    if folder is None or node is None:
        pytest.skip("PHONEBIT_WEB names no folder of packaging/web.py, or there is no Node.js")
    return Path(folder) / request.param / "phonebit.js"


def results_of(module: Path, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    request = {"threads": 2 if module.parent.name == "threads" else 1, "runs": runs}
    return answer_of(HERE / "forward.js", module, request)


def stored(file: Path, kind: str) -> dict[str, np.ndarray]:
    prefix = f"{kind}:"
    with np.load(file.with_suffix(".npz")) as arrays:
        return {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }


def as_array(content: bytes, tensor: dict[str, Any], batch: int) -> np.ndarray:
    """A tensor of a batch as golden files have it: -1 and +1 for bits."""
    shape = (batch, tensor["height"], tensor["width"])
    if tensor["dtype"] != "bit":
        dtype = {"f32": np.float32, "u8": np.uint8}[tensor["dtype"]]
        return np.frombuffer(content, dtype).reshape(*shape, tensor["channels"])
    rows = np.frombuffer(content, np.uint8).reshape(*shape, -1)
    bits = np.unpackbits(rows, axis=-1, bitorder="little")[..., : tensor["channels"]]
    return 2 * bits.astype(np.int8) - 1


def has_float_products(about: dict[str, Any]) -> bool:
    """Whether there are multiply-adds of floats, which WebAssembly's SIMD rounds twice."""
    kernels = [layer["kernel"] for layer in about["layers"]]
    return any(kernel.startswith(("conv2d_f32", "depthwise_f32")) for kernel in kernels)


def golden_runs(module: Path, folder: Path) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """Of each golden file and instruction set what forward.js is asked; inputs are written."""
    described = results_of(module, [{"file": str(file), "device": "cpu"} for file in FILES])
    for file, about in zip(FILES, described, strict=True):
        inputs = stored(file, "in")
        paths = []
        for tensor in about["inputs"]:
            paths.append(folder / f"{file.stem}.{len(paths)}.in")
            array = inputs[tensor["name"]]
            packed = pack_signs(array) if tensor["dtype"] == "bit" else array
            paths[-1].write_bytes(np.ascontiguousarray(packed).tobytes())
        for isa in ISAS:
            outputs = [
                str(folder / f"{file.stem}.{isa}.{i}.out") for i in range(len(about["outputs"]))
            ]
            yield (
                file,
                isa,
                {
                    "file": str(file),
                    "device": f"cpu:{isa}",
                    "batch": len(next(iter(inputs.values()))),
                    "inputs": [str(path) for path in paths],
                    "outputs": outputs,
                },
            )


def test_golden_files_give_their_bits(module: Path, tmp_path: Path) -> None:
    assert len(FILES) == 37
    cases = list(golden_runs(module, tmp_path))
    results = results_of(module, [run for _, _, run in cases])
    rounded = set()
    for (file, isa, run), about in zip(cases, results, strict=True):
        assert about.get("device") == f"cpu:{isa}", about
        is_rounded = isa == "wasm_simd" and has_float_products(about)
        if is_rounded:
            rounded.add(file.stem)
        expected = stored(file, "out")
        for tensor, path in zip(about["outputs"], run["outputs"], strict=True):
            array = expected[tensor["name"]]
            result = as_array(Path(path).read_bytes(), tensor, len(array))
            where = f"{file.stem} on {isa}"
            if is_rounded or tensor["name"].endswith("_tolerance"):
                np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-6, err_msg=where)
            else:
                np.testing.assert_array_equal(result, array, err_msg=where)
    assert rounded == {"byte_weights", "float_layers", "half_weights"}


def test_hostile_files_are_errors_in_words(module: Path, tmp_path: Path) -> None:
    good = GOLDEN / "tiny_classifier.pbit"
    content = good.read_bytes()
    wrong = {
        "text": b"<html>404</html>",
        "cut": content[: len(content) // 2],
        "flipped": content[:100] + bytes([content[100] ^ 1]) + content[101:],
    }
    runs = []
    for name, some in wrong.items():
        path = tmp_path / name
        path.write_bytes(some)
        runs.append({"file": str(path), "device": "cpu"})
    runs += [{"file": str(good), "device": device} for device in ("gpu", "cpu:avx2", "cpu")]
    *errors, no_gpu, no_isa, last = results_of(module, runs)
    for some, about in zip(wrong.values(), errors, strict=True):
        assert about["error"].startswith(f"memory of {len(some)} bytes: "), about
    assert no_gpu["error"].endswith("device 'gpu': this build of PhoneBit is for the CPU alone")
    assert no_isa["error"].endswith("choose one of: wasm_simd, scalar")
    assert last["device"] == "cpu:wasm_simd"


def test_a_module_is_small(module: Path) -> None:
    files = [path for path in module.parent.iterdir() if path.suffix in (".js", ".wasm")]
    assert {path.name for path in files} >= {"phonebit.js", "phonebit.wasm"}
    assert sum(path.stat().st_size for path in files) < 700_000
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) < 250_000
