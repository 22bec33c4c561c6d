"""Golden files on an emulated phone: 64-bit Arm under qemu-user, with Mesa's OpenCL on its CPU.

python run_on_rusticl.py MESA BUILD [PART OF A NAME...]

MESA is the folder that mobile-isa/setup.sh made; BUILD holds phonebit_run for aarch64, linked
dynamically so that it can load libOpenCL. Each network runs on NEON, on OpenCL and on "gpu+cpu",
where the GPU does everything unless the file has a plan for this pair; each result must be the
golden one, to the last bit. There are few networks, since kernels compile slowly there.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
DEVICES = ("cpu:neon", "gpu", "gpu+cpu")
# A whole classifier, the same with plans, and a first layer that reads levels.
NAMES = ("tiny_classifier", "planned_classifier", "u8_first_layer_3_64")
LIMIT_S = 600


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


def run_network(emulator: list[str], program: Path, name: str, device: str, home: Path) -> str:
    """What is wrong with one network on one device; "" where its results are the golden ones."""
    environment = {key: text for key, text in os.environ.items() if not key.startswith("OCL_ICD")}
    # Mesa keeps its programs below the home folder.
    environment.update(RUSTICL_ENABLE="llvmpipe", HOME=str(home))
    model = GOLDEN / f"{name}.pbit"
    with tempfile.TemporaryDirectory() as folder:
        options = ["--device", device, "--threads", "2", "--cache", str(home)]
        options += write_arrays(model.with_suffix(".npz"), Path(folder))
        try:
            done = subprocess.run(
                [*emulator, program, model, *options],
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no result within {LIMIT_S} s"
    texts = f"{done.stdout}{done.stderr}"
    return "" if done.returncode == 0 else f"exit code {done.returncode}\n{texts}"


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    mesa, build = (Path(argument).resolve() for argument in arguments[:2])
    program = build / "runtime" / "tools" / "phonebit_run"
    emulator = [str(mesa / "qemu/usr/bin/qemu-aarch64"), "-L", str(mesa / "root")]
    for path, origin in ((program, "phonebit_run's target"), (Path(emulator[0]), "setup.sh")):
        if not path.exists():
            print(f"{path} is missing; {origin} makes it", file=sys.stderr)
            return 2
    parts = arguments[2:] or [""]
    names = [name for name in NAMES if any(part in name for part in parts)]
    failures = 0
    with tempfile.TemporaryDirectory() as home:
        for name in names:
            for device in DEVICES:
                wrong = run_network(emulator, program, name, device, Path(home))
                print(f"{name} on {device}: {wrong or 'the golden results'}", flush=True)
                failures += wrong != ""
    print(f"{len(names)} networks on {len(DEVICES)} kinds of processors, {failures} failures")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
