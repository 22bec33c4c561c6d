"""Golden files on an emulated phone: 64-bit Arm under qemu-user, with Mesa's OpenCL on its CPU.

python run_on_rusticl.py MESA BUILD [PART OF A NAME...]

MESA is the folder that mobile-isa/setup.sh made; BUILD holds phonebit_run for aarch64, linked
dynamically so that it can load libOpenCL. Each network runs on NEON, on OpenCL and on both at once,
and each result must be the golden one, to the last bit. There are few, since kernels compile slowly
there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
DEVICES = ("cpu:neon", "gpu", "gpu+cpu")
# A whole classifier, one with a plan for two processors, and levels as bit-planes.
NAMES = ("tiny_classifier", "planned_classifier", "u8_first_layer_3_64")
LIMIT_S = 600


def write_arrays(arrays: Path, folder: Path) -> list[str]:
    """The arrays of a golden .npz as raw files; returns phonebit_run's options for them.

    Raises:
        ValueError: NumPy wrote an array in another version of its format.
    """
    options = []
    with zipfile.ZipFile(arrays) as archive:
        for number, entry in enumerate(archive.namelist()):
            kind, name = entry.removesuffix(".npy").split(":", 1)
            content = archive.read(entry)
            if content[6:8] != b"\x01\x00":
                raise ValueError(f"{arrays}: {entry}: expected version 1.0 of NumPy's format")
            raw = folder / f"{number}.bin"
            raw.write_bytes(content[10 + int.from_bytes(content[8:10], "little") :])
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
