"""A caller's rounding mode or flush-to-zero changes no bit of a result, and is handed back."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import phonebit
from phonebit import _runtime
from support.opencl_device import device_name, pyopencl_device

FILES = ["float_layers", "log_softmax", "residual_block_64", "rounded_32", "two_slopes_31"]
GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
FIXTURES = Path(__file__).parents[1] / "converter" / "fixtures"
MACHINE = platform.machine()
ISAS = [name for name, _, supported in _runtime.isas() if supported]

# Where glibc's fenv_t keeps the control register (MXCSR, FPCR), and what its bits mean.
OFFSETS = {"x86_64": 28, "aarch64": 0}
MODES = {
    "x86_64": {"down": 0x2000, "up": 0x4000, "zero": 0x6000, "flush": 0x8040},
    "aarch64": {"up": 1 << 22, "down": 2 << 22, "zero": 3 << 22, "flush": 1 << 24},
}
pytestmark = pytest.mark.skipif(
    MACHINE not in OFFSETS or platform.libc_ver()[0] != "glibc",
    reason="sets the floating-point unit through glibc's fenv_t of x86-64 or aarch64",
)


def control_register(libm: ctypes.CDLL) -> int:
    environment = ctypes.create_string_buffer(64)
    assert libm.fegetenv(environment) == 0
    return ctypes.c_uint32.from_buffer(environment, OFFSETS[MACHINE]).value


@contextmanager
def mode_of_caller(mode: str) -> Iterator[None]:
    """The calling thread rounds, or flushes, like this; it must still do so at the end."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    before, changed = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    assert libm.fegetenv(before) == 0 == libm.fegetenv(changed)
    register = ctypes.c_uint32.from_buffer(changed, OFFSETS[MACHINE])
    register.value |= MODES[MACHINE][mode]
    assert libm.fesetenv(changed) == 0
    try:
        yield
        bits = MODES[MACHINE][mode]
        assert control_register(libm) & bits == bits, "the engine has not handed the mode back"
    finally:
        assert libm.fesetenv(before) == 0


def inputs_of(network: phonebit.Network, scale: float) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [
        random.integers(0, 256, (2, *tensor.shape)).astype(np.uint8)
        if tensor.dtype == "u8"
        else (random.standard_normal((2, *tensor.shape)) * scale).astype(np.float32)
        for tensor in network.inputs
    ]


def bits_of(network: phonebit.Network, inputs: list[np.ndarray]) -> bytes:
    names = [tensor.name for tensor in network.inputs]
    results = network.forward(dict(zip(names, inputs, strict=True)))
    return b"".join(np.ascontiguousarray(array).tobytes() for array in results.values())


def check_modes(file: str, device: str, threads: int) -> None:
    path = GOLDEN / f"{file}.pbit"
    expected = phonebit.Network.load(path, device=device, threads=threads)
    loaded_in = {}
    for mode in MODES["x86_64"]:
        with mode_of_caller(mode):
            loaded_in[mode] = phonebit.Network.load(path, device=device, threads=threads)
    for scale in (1.0, 1e-39):  # the second is subnormal
        inputs = inputs_of(expected, scale)
        bits = bits_of(expected, inputs)
        for mode, loaded_in_mode in loaded_in.items():
            with mode_of_caller(mode):
                assert bits_of(expected, inputs) == bits, f"{mode}: caller"
                assert bits_of(loaded_in_mode, inputs) == bits, f"{mode}: loader and caller"
            # Workers inherit the state of the thread that loads.
            assert bits_of(loaded_in_mode, inputs) == bits, f"{mode}: loader"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("file", FILES)
def test_the_callers_mode_changes_no_bit_on_a_cpu(file: str, isa: str, threads: int) -> None:
    check_modes(file, f"cpu:{isa}", threads)


@pytest.mark.parametrize("file", ["float_layers", "residual_block_64"])
@pytest.mark.parametrize("device", ["gpu", "gpu+cpu"])
def test_the_callers_mode_changes_no_bit_on_opencl(file: str, device: str) -> None:
    name = device_name(pyopencl_device())
    check_modes(file, device.replace("gpu", name), threads=1)


@pytest.mark.parametrize("mode", sorted(MODES["x86_64"]))
def test_conversion_finds_the_same_thresholds(mode: str, tmp_path: Path) -> None:
    checkpoint = FIXTURES / "binary_convolutions.h5"
    phonebit.convert(checkpoint, tmp_path / "expected.pbit")
    with mode_of_caller(mode):
        phonebit.convert(checkpoint, tmp_path / "in_mode.pbit")
    expected, in_mode = (tmp_path / f"{name}.pbit" for name in ("expected", "in_mode"))
    assert in_mode.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("mode", sorted(MODES["x86_64"]))
def test_the_modes_of_these_tests_are_in_force(mode: str) -> None:
    values = np.linspace(0.1, 1.0, 64, dtype=np.float32)

    def rounded() -> list[np.ndarray]:
        return [values / np.float32(3), -values / np.float32(3), values * np.float32(1e-40)]

    expected = rounded()
    with mode_of_caller(mode):
        results = rounded()
    assert any((a != b).any() for a, b in zip(results, expected, strict=True))
