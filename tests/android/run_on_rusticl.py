"""Networks on an emulated phone: 64-bit Arm under qemu-user, with Mesa's OpenCL on its CPU.

python run_on_rusticl.py MESA BUILD NETWORKS [PART OF A NAME...]

MESA is the folder that benchmarks/mobile_isa/setup.sh made; BUILD holds phonebit_run and
test_coexec for aarch64, linked dynamically so that they can load libOpenCL; NETWORKS holds what
phone_networks.py made on x86. Each network and some golden files run on NEON and on OpenCL, where
each result must be the expected one; of some, both processors then compute halves of every layer
(tests/cpp/test_coexec_networks.cpp). All to the last bit, but for half arithmetic. There are few
networks, since kernels compile slowly there.
"""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
DEVICES = ("cpu:neon", "gpu")
GOLDEN_NAMES = ("u8_first_layer_3_64",)
"""A first layer that reads levels."""
NAMES = ("vgg_small", "quicknet", "yolov2_tiny")
"""Of the networks, all of which both processors compute, too."""
RUN, SHARING_TEST = Path("runtime/tools/phonebit_run"), Path("tests/cpp/test_coexec")
LIMIT_S = 300
"""Processor time per run, at least five times what one takes; a busy machine changes it little."""
WALL_LIMIT_S = 1800
"""A run that waits for ever takes no processor time."""


def packed_bits(signs: bytes, channels: int) -> bytes:
    """Bits as they lie in memory, from an array of +1 and -1 (docs/glossary.md)."""
    packed = bytearray()
    for begin in range(0, len(signs), channels):
        pixel = signs[begin : begin + channels]
        number = sum(1 << channel for channel, sign in enumerate(pixel) if sign == 1)
        packed += number.to_bytes(4 * ((channels + 31) // 32), "little")
    return bytes(packed)


def raw_tensor(content: bytes, where: str) -> bytes:
    """A tensor as phonebit_run reads it, from a file .npy.

    Raises:
        ValueError: It is not of version 1.0 of NumPy's format.
    """
    if content[6:8] != b"\x01\x00":
        raise ValueError(f"{where}: expected version 1.0 of NumPy's format")
    begin = 10 + int.from_bytes(content[8:10], "little")
    header = ast.literal_eval(content[10:begin].decode())
    if header["descr"] == "|i1":
        return packed_bits(content[begin:], header["shape"][-1])
    return content[begin:]


def write_arrays(arrays: Path, folder: Path) -> list[str]:
    """The arrays of a golden .npz as raw files; returns phonebit_run's options for them."""
    options = []
    with zipfile.ZipFile(arrays) as archive:
        for number, entry in enumerate(archive.namelist()):
            kind, name = entry.removesuffix(".npy").split(":", 1)
            raw = folder / f"{number}.bin"
            raw.write_bytes(raw_tensor(archive.read(entry), f"{arrays}: {entry}"))
            options += ["--input" if kind == "in" else "--check", f"{name}={raw}"]
    return options


def limit_processor_time() -> None:
    """Ends this process by SIGXCPU after LIMIT_S of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 5))


@dataclass
class Phone:
    """The emulator with what programs there need."""

    mesa: Path
    home: Path

    @property
    def emulator(self) -> Path:
        return self.mesa / "root/usr/bin/qemu-aarch64"

    def run(self, *command: str | Path) -> str:
        """What is wrong with a program's run; "" where it succeeded on all that it was given."""
        environment = {
            key: text for key, text in os.environ.items() if not key.startswith("OCL_ICD")
        }
        # Mesa keeps its programs below the home folder. LLVM's optimiser would take half the time.
        environment.update(RUSTICL_ENABLE="llvmpipe", GALLIVM_PERF="nopt", HOME=str(self.home))
        try:
            done = subprocess.run(
                [self.emulator, "-L", self.mesa / "root", *command],
                env=environment,
                capture_output=True,
                text=True,
                timeout=WALL_LIMIT_S,
                check=False,
                preexec_fn=limit_processor_time,
            )
        except subprocess.TimeoutExpired:
            return f"no result within {WALL_LIMIT_S} s"
        if done.returncode == -signal.SIGXCPU:
            return f"no result within {LIMIT_S} s of processor time"
        texts = f"{done.stdout}{done.stderr}"
        if "skipped: " in done.stdout:
            return f"OpenCL is missing\n{texts}"
        return "" if done.returncode == 0 else f"exit code {done.returncode}\n{texts}"


def run_network(phone: Phone, program: Path, model: Path, device: str) -> str:
    """What is wrong with one network on one device; "" where its results are those next to it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--device", device, "--threads", "2", "--cache", str(phone.home)]
        options += write_arrays(model.with_suffix(".npz"), Path(folder))
        return phone.run(program, model, *options)


def share_network(phone: Phone, program: Path, model: Path) -> str:
    """What is wrong where both processors compute parts of each layer of a network."""
    only = "--test-case=networks of which*"
    names = f"PHONEBIT_TEST_NETWORK={model},PHONEBIT_CACHE_DIR={phone.home}"
    return phone.run("-E", names, program, only)


def halve(phone: Phone, program: Path) -> str:
    """What is wrong with half arithmetic, which this OpenCL has (cl_khr_fp16)."""
    return phone.run("-E", "PHONEBIT_TEST_HALF=1", program, "--test-case=*half arithmetic*")


def outcomes(
    phone: Phone, build: Path, networks: Path, parts: list[str]
) -> Iterator[tuple[str, str]]:
    """Each network on what, and what is wrong there; "" where nothing is."""
    golden = [GOLDEN / f"{name}.pbit" for name in GOLDEN_NAMES]
    if any(part in "half arithmetic" for part in parts):
        yield "half arithmetic", halve(phone, build / SHARING_TEST)
    shared = [networks / f"{name}.pbit" for name in NAMES]
    for model in golden + shared:
        if not any(part in model.stem for part in parts):
            continue
        for device in DEVICES:
            yield f"{model.stem} on {device}", run_network(phone, build / RUN, model, device)
        if model in shared:
            yield f"{model.stem} on both", share_network(phone, build / SHARING_TEST, model)


def main(arguments: list[str]) -> int:
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    mesa, build, networks = (Path(argument).resolve() for argument in arguments[:3])
    with tempfile.TemporaryDirectory() as home:
        phone = Phone(mesa, Path(home))
        needed = {build / RUN: "its target", build / SHARING_TEST: "its target"}
        for path, origin in (needed | {phone.emulator: "setup.sh"}).items():
            if not path.exists():
                print(f"{path} is missing; {origin} makes it", file=sys.stderr)
                return 2
        count = failures = 0
        for what, wrong in outcomes(phone, build, networks, arguments[3:] or [""]):
            print(f"{what}: {wrong or 'the expected results'}", flush=True)
            count += 1
            failures += wrong != ""
    print(f"{count} runs, {failures} failures")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
