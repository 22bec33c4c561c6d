"""The native programs for a phone: where the NDK presets of CMake put them, and what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from phonebit.android.phone import Phone
from phonebit.errors import InputError

BENCH: Final = "phonebit_bench"
RUN: Final = "phonebit_run"

_ABI_OF_MACHINE: Final = {3: "x86", 40: "armeabi-v7a", 62: "x86_64", 183: "arm64-v8a"}
"""By ``e_machine`` of the ELF header."""
_ELF_MACHINE: Final = slice(18, 20)


def native_tools(phone: Phone, folder: Path | None = None) -> list[Path]:
    """The programs for a phone.

    Args:
        phone: it.
        folder: where they are; None: where ``cmake --build`` of the phone's preset puts them, below
            the working directory.

    Raises:
        InputError: they are not there, or are for another processor.
        OSError: one cannot be read.
    """
    preset = f"android-{phone.abis[0]}"
    where = folder or Path("build") / preset / "runtime" / "tools"
    found = [where / name for name in (BENCH, RUN)]
    for program in found:
        if not program.is_file():
            raise InputError(
                "no native tools for this phone",
                where=str(program),
                hint=f"build them: `cmake --preset {preset} && cmake --build --preset {preset}` "
                "(ANDROID_NDK_HOME names the NDK), or give their folder to --tools",
            )
        abi = _abi(program)
        if abi not in phone.abis:
            raise InputError(
                "the program is for another processor",
                where=str(program),
                expected=" or ".join(phone.abis),
                got=abi or "no program of Linux",
                hint=f"give the folder of preset {preset} to --tools",
            )
    return found


def _abi(program: Path) -> str | None:
    with program.open("rb") as file:
        header = file.read(_ELF_MACHINE.stop)
    if not header.startswith(b"\x7fELF"):
        return None
    machine = int.from_bytes(header[_ELF_MACHINE], "little")
    return _ABI_OF_MACHINE.get(machine, f"machine {machine}")
