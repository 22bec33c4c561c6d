"""Kernels and trained networks on an emulated processor with SME2, with vectors of 128 to 512 bits.

python run_on_sme2.py QEMU BUILD

QEMU is qemu-aarch64 10.1 or newer (benchmarks/mobile_isa/setup.sh has it in root/usr/bin); BUILD
holds test_kernels and phonebit_run for aarch64, linked statically. The kernel tests compare with
plain loops, the networks with NEON, all to the last bit. A processor that lacks SME2 is a failure.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

VECTOR_BITS = (128, 256, 512)
ISAS = "sme2 neon_i8mm neon_dotprod neon scalar"
TESTS = ("binary_conv", "lazy_saving")
TEST_PROGRAM, RUN = Path("tests/cpp/test_kernels"), Path("runtime/tools/phonebit_run")
NETWORKS = Path(__file__).parents[2] / "models" / "trained"
NAMES = {"fashion-larq": 28 * 28, "fashion-resnet18": 28 * 28}
"""Networks, and the bytes of their inputs."""


def run(qemu: Path, vector_bits: int, *command: str | Path) -> str:
    """What is wrong with a program's run; "" where it succeeded."""
    cpu = f"max,sme-default-vector-length={vector_bits // 8}"
    # A test case fails where the processor has other instruction sets.
    environment = os.environ | {"PHONEBIT_TEST_ISAS": ISAS, "PHONEBIT_TEST_CASES": "100"}
    done = subprocess.run(
        [qemu, "-cpu", cpu, *command], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def compare_networks(qemu: Path, program: Path, folder: Path) -> dict[str, str]:
    """What is wrong with each network and length of vectors; "" where NEON's results came out."""
    found = {}
    for name, size in NAMES.items():
        model, levels, output = NETWORKS / f"{name}.pbit", folder / "levels", folder / "output"
        levels.write_bytes(random.Random(name).randbytes(size))
        flags = ["--threads", "2", "--input", levels]
        neon = run(qemu, 512, program, model, *flags, "--device", "cpu:neon", "--output", output)
        for bits in VECTOR_BITS:
            flags_of_sme2 = [*flags, "--device", "cpu:sme2", "--check", output]
            wrong = neon or run(qemu, bits, program, model, *flags_of_sme2)
            found[f"{name}, {bits} bits"] = wrong
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    qemu, build = (Path(argument).resolve() for argument in arguments)
    found = {}
    for bits in VECTOR_BITS:
        for test in TESTS:
            only = f"--source-file=*/test_{test}.cpp"
            found[f"{test}, {bits} bits"] = run(qemu, bits, build / TEST_PROGRAM, only)
    with tempfile.TemporaryDirectory() as folder:
        found |= compare_networks(qemu, build / RUN, Path(folder))
    for what, wrong in found.items():
        print(f"{what}: {wrong or 'the expected results'}")
    failures = sum(wrong != "" for wrong in found.values())
    print(f"{len(found)} runs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
