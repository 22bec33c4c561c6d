"""Each operator of the format on each backend: what the reference interpreter computes.

The table is ``rows.py``; an operator or an epilogue operation without a row fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rows import CUT_BY_CHANNELS, MEMORY, OF_OPERATORS, OPERATORS, RANDOM, ROWS, network

from phonebit.converter.interpreter import run
from phonebit.converter.ops.epilogue import EPILOGUE_OPS
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_devices, gpu_error, gpu_runtime
from phonebit.format.reader import parse_contents
from phonebit.format.records import DataType, OpKind
from support.opencl_device import check_warnings, device_name, pyopencl_device
from support.random_plans import halves_plan

Array = NDArray[Any]
_runtime = gpu_runtime()
ISAS = [name for name, _, supported in _runtime.isas() if supported]
ON_ISAS = [
    (name, isa)
    for name, isa in product([*ROWS, *RANDOM, *MEMORY], ISAS)
    if (name, isa) != ("many_parts_40_192", "scalar")  # seconds; many_parts_24_96 has its cuts
]
BATCH = 2


@cache
def content(name: str) -> bytes:
    return to_bytes(network(name), {})


@cache
def values(name: str) -> dict[str, Array]:
    """Inputs, zeros of both signs and halves among them, and all that the reference computes."""
    graph = network(name)
    rng = np.random.default_rng(len(name))
    inputs: dict[str, Array] = {}
    for key in graph.inputs:
        shape = (BATCH, *graph.types[key].shape)
        if graph.types[key].dtype == DataType.U8:
            inputs[key] = rng.integers(0, 256, shape).astype(np.uint8)
        else:
            signs = rng.choice(np.float32([-1, 1]), shape)
            inputs[key] = (rng.integers(0, 7, shape) / 2).astype(np.float32) * signs
    return inputs | run(graph, inputs, wanted=graph.types)


Same = Callable[[str, Array, Array], None]


def check(expected: dict[str, Array], made: Any, same: Same) -> None:
    """All values, and the outputs."""
    inputs = [expected[info.name] for info in made.inputs]
    activations = made.activations(inputs)
    assert activations.keys() == expected.keys()
    for key, got in activations.items():
        same(key, got, expected[key])
    for _ in range(2):  # the second inference replays what the first recorded
        for info, got in zip(made.outputs, made.forward(inputs), strict=True):
            same(info.name, got, expected[info.name])


def equal(name: str, got: Array, expected: Array) -> None:
    assert got.dtype == expected.dtype, name
    np.testing.assert_array_equal(got, expected, err_msg=name)


def as_defined(name: str, got: Array, expected: Array) -> None:
    """Equal to the reference, whose exponentials and quotients round in their own way."""
    if name.endswith("_tolerance"):
        np.testing.assert_allclose(got, expected, rtol=4e-6, atol=4e-7, err_msg=name)
    else:
        equal(name, got, expected)


def stored(name: str, folder: Path) -> Path:
    path = folder / "net.pbit"
    path.write_bytes(content(name))
    return path


@pytest.mark.parametrize(("name", "isa"), ON_ISAS)
def test_instruction_sets(name: str, isa: str, tmp_path: Path) -> None:
    path = stored(name, tmp_path)
    for threads in (1, 2, 5):
        check(values(name), _runtime.Network(path, threads, f"cpu:{isa}"), as_defined)
    alone, expected = _runtime.Network(path, 1, f"cpu:{isa}"), values(name)
    for index, layer in enumerate(alone.layers):
        results = alone.run_op(index, [expected[key] for key in layer.inputs])
        assert set(results) == set(layer.outputs)
        for key, result in results.items():
            as_defined(key, result, expected[key])


def of_cpu(name: str, folder: Path) -> dict[str, Array]:
    """What the CPU computes, to the last bit what both processors are to compute."""
    alone = _runtime.Network(stored(name, folder), 1, "cpu")
    return dict(alone.activations([values(name)[info.name] for info in alone.inputs]))


@pytest.fixture(scope="module")
def gpu() -> str:
    if not gpu_devices():
        pytest.skip(f"no OpenCL device: {gpu_error()}")
    return device_name(pyopencl_device())


@pytest.mark.parametrize("name", ROWS)
def test_opencl(name: str, gpu: str, kernel_cache: str, tmp_path: Path) -> None:
    for command_buffer in (True, False):
        options = {"cache_directory": kernel_cache, "command_buffer": command_buffer}
        made = _runtime.Network(stored(name, tmp_path), device=gpu, **options)
        check(of_cpu(name, tmp_path), made, equal)
        check_warnings(made.warnings)


CUTS = [
    *((name, "rows") for name in OF_OPERATORS),
    # Each part of channels compiles a program of its own.
    *(pytest.param(name, "channels", marks=pytest.mark.slow) for name in CUT_BY_CHANNELS),
]


@pytest.mark.parametrize(("name", "cut"), CUTS)
def test_both_processors(name: str, cut: str, gpu: str, kernel_cache: str, tmp_path: Path) -> None:
    """Each layer is cut in the middle, where it can be."""
    plan = halves_plan(parse_contents(content(name)), cut == "rows")
    options = {"cache_directory": kernel_cache, "plan": plan.as_tuple()}
    made = _runtime.Network(stored(name, tmp_path), 1, f"{gpu}+cpu", **options)
    check(of_cpu(name, tmp_path), made, equal)
    check_warnings(made.warnings)


def test_every_operator_and_epilogue_operation_has_a_row() -> None:
    assert OPERATORS.keys() == set(OpKind)
    for kind, rows in OPERATORS.items():
        for i in range(len(rows)):
            contents = parse_contents(content(kind.name.lower() + f"_{i}" * (i > 0)))
            assert kind in contents.ops["kind"]
    for step in EPILOGUE_OPS:
        assert step in parse_contents(content(f"step_{step.name.lower()}")).steps["kind"]
