"""Compiles OpenCL programs for a GPU that is not there, in the root that setup.sh unpacked.

Mesa's driver runs under qemu-user on a fake DRM device, which answers to every submission and
executes nothing. A start takes ten seconds, a program a fraction of one: one process builds all.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.mobile_isa import machine_code
from benchmarks.mobile_isa.machine_code import MachineCode

LONGEST_RUN_S = 1800
_BUILDER = Path(__file__).with_name("build_programs.py")
_LIBRARIES = "/usr/lib/aarch64-linux-gnu"


@dataclass(frozen=True)
class Gpu:
    """A GPU that Mesa compiles for."""

    name: str  # as on the command line
    vendor: str  # as in tuning.table
    family: str  # as in tuning.table
    core: str  # key of machine_code.RATES
    device_id: str  # how the fake device is told which GPU it is


CASES: Final = json.loads(Path(__file__).with_name("cases.json").read_text())
GPUS: Final = {facts["name"]: Gpu(**facts) for facts in CASES["gpus"]}


def mesa_version(folder: Path) -> str:
    """Version of the unpacked Mesa."""
    return (folder / "root" / "mesa-version").read_text().strip()


def compile_programs(
    folder: Path, gpu: Gpu, texts: Sequence[str], log: Path | None = None
) -> list[MachineCode | str]:
    """The code of programs of one kernel each, or the end of what the compiler said without any.

    ``folder`` is what setup.sh was given; ``log`` keeps the whole output, with the disassembly.
    """
    root = folder / "root"
    if not (root / "mesa-version").exists():
        raise RuntimeError(f"{root} is not complete; run benchmarks/mobile_isa/setup.sh {folder}")
    results: list[MachineCode | str] = []
    output = ""
    while len(results) < len(texts):
        with tempfile.TemporaryDirectory(dir=root / "tmp") as work:
            part = _run(root, Path(work), gpu, texts[len(results) :])
        output += part
        found = _split(gpu, part)
        if not found:
            raise RuntimeError(f"{gpu.name}: nothing was compiled:\n{part[-2000:]}")
        results += found
    if log is not None:
        log.write_text(output)
    return results


def _run(root: Path, work: Path, gpu: Gpu, texts: Sequence[str]) -> str:
    """Output of one process for as many programs as it gets through."""
    inside = Path("/tmp") / work.name
    for index, text in enumerate(texts):
        # Mesa has a fused fma for Adreno only with libclc patched; its multiply-add is one
        # instruction all the same.
        head = "#define fma(a, b, c) mad(a, b, c)\n" if gpu.vendor == "qualcomm" else ""
        (work / f"{index}.cl").write_text(head + text)
    shutil.copy(_BUILDER, work / _BUILDER.name)

    vendor = CASES["vendors"][gpu.vendor]
    environment = {
        "HOME": "/root",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "MESA_SHADER_CACHE_DISABLE": "1",
        vendor["id_variable"]: gpu.device_id,
        **vendor["variables"],
    }
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if chroot is None:
        raise RuntimeError("chroot not found")
    command = [chroot, str(root), "/usr/bin/qemu-aarch64"]
    command += ["-E", f"LD_PRELOAD={_LIBRARIES}/{vendor['shim']}"]
    command += ["/usr/bin/python3", str(inside / _BUILDER.name), str(inside), str(len(texts))]
    # To a file, so that a look at it tells how far a long run is.
    output = work / "output"
    with output.open("wb") as file, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, env=environment, stdout=file, stderr=subprocess.STDOUT, timeout=LONGEST_RUN_S
        )
    return output.read_bytes().decode(errors="replace").replace("MESA: info: ", "")


def _split(gpu: Gpu, output: str) -> list[MachineCode | str]:
    """Results of the programs that a process began; one that it did not end has crashed it."""
    results: list[MachineCode | str] = []
    for log in re.split(r"\n=== PROGRAM \d+\n", output)[1:]:
        end = re.search(r"^=== (BUILT|FAILED)$", log, re.MULTILINE)
        if end and end[1] == "BUILT":
            try:
                results.append(machine_code.parse(gpu.core, log))
            except ValueError as error:
                results.append(str(error))
        else:
            said = log[: end.start()] if end else log + "\nthe compiler crashed"
            lines = [line for line in said.splitlines() if line.strip()]
            results.append("\n".join(lines[-12:]) or "the compiler said nothing")
    return results
