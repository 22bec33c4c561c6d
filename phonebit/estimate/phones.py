"""Descriptions of phones and boards: clocks, cores, GPU, memory."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from phonebit.devices.kernel_presets import Kernels, preset_lines
from phonebit.errors import InputError
from phonebit.planner.predict.kernels import GpuFacts

PHONES: Final = Path(__file__).with_name("phones.toml")
LOCAL_BYTES: Final = 32768
"""Of a work-group on every GPU of the list."""


@dataclass(frozen=True)
class CpuCore:
    """A kind of core.

    Args:
        core: Its name in ``cpu_cycles.json``.
        slowdown: What it takes beyond its modelled cycles, which know no cache miss.
    """

    core: str
    clock_mhz: float
    slowdown: float


@dataclass(frozen=True)
class PhoneGpu:
    """A GPU.

    Args:
        name: As its driver says it; tuning tables may have lines for it.
        vendor: As tuning tables call it, as ``family``.
        code: Its instructions in ``gpu_instructions.json``.
        units: Work-groups that are computed at the same time.
        lanes: Work-items of a group that issue an instruction in a cycle.
        launch_us: What a kernel launch costs.
        slowdown: What it takes beyond its modelled time; ``phones.toml`` has its origin.
    """

    name: str
    vendor: str
    family: str
    code: str
    units: int
    lanes: int
    clock_mhz: float
    launch_us: float
    slowdown: float

    def facts(self, kernels: Kernels = "tuned") -> GpuFacts:
        """As kernel selection sees it, with the built-in tuning table and a preset's lines."""
        mhz = round(self.clock_mhz)
        facts = (self.name, self.vendor, self.family, "", self.units, mhz, LOCAL_BYTES, True)
        lines = preset_lines(kernels, self.name) if kernels != "tuned" else ""
        return GpuFacts(*facts).with_tuning(lines)


@dataclass(frozen=True)
class PhoneModel:
    """A phone or a board; ``phones.toml`` says what its fields are."""

    name: str
    title: str
    bandwidth_gbs: float
    cpu: tuple[CpuCore, ...]
    gpu: PhoneGpu | None = None
    soc: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def known_phones() -> dict[str, PhoneModel]:
    """The phones that ship, by name."""
    tables = tomllib.loads(PHONES.read_text())
    return {name: _phone(name, table, PHONES.name) for name, table in tables.items()}


def phone_named(name: str) -> PhoneModel:
    """A phone that ships, or that a file describes.

    Raises:
        InputError: There is neither, or the file is not a description.
    """
    path = Path(name)
    if name in known_phones():
        return known_phones()[name]
    if not path.is_file():
        raise InputError(
            "no such phone",
            where="--phone",
            expected=f"a description file, or one of {', '.join(known_phones())}",
            got=repr(name),
        )
    try:
        return _phone(path.stem, tomllib.loads(path.read_text()), name)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("not a TOML file", where=name, got=str(error)) from None


def phone_of_soc(soc: str) -> PhoneModel | None:
    """The phone whose chip this is, as Android names it; None: none that ships."""
    words = soc.split()
    for phone in known_phones().values():
        if any(chip == soc or chip in words or soc.endswith(f" {chip}") for chip in phone.soc):
            return phone
    return None


def _phone(name: str, table: Mapping[str, Any], where: str) -> PhoneModel:
    values = dict(table)
    cores = [_record(CpuCore, core, f"{where}: cpu") for core in values.get("cpu", [])]
    gpu = values.get("gpu")
    values |= {
        "name": name,
        "cpu": tuple(cores),
        "gpu": None if gpu is None else _record(PhoneGpu, gpu, f"{where}: gpu"),
        "soc": tuple(values.get("soc", ())),
    }
    phone: PhoneModel = _record(PhoneModel, values, where)
    _check_names(phone, where)
    return phone


def _check_names(phone: PhoneModel, where: str) -> None:
    from phonebit.estimate.cpu import cpu_table
    from phonebit.estimate.gpu import gpu_table

    asked = [("core", core.core, cpu_table()["cores"]) for core in phone.cpu]
    if phone.gpu is not None:
        asked.append(("code", phone.gpu.code, gpu_table()))
    for key, value, known in asked:
        if value not in known:
            raise InputError(
                f"unknown {key}", where=where, expected=", ".join(known), got=repr(value)
            )


def _record(kind: type[Any], table: Any, where: str) -> Any:
    """A record of a table, all of whose numbers must be positive."""
    wanted = {item.name: str(item.type) for item in fields(kind)}
    needed = set(wanted) - {"soc", "gpu"}
    if not isinstance(table, Mapping) or not needed <= set(table) <= set(wanted):
        got = ", ".join(sorted(table)) if isinstance(table, Mapping) else repr(table)
        raise InputError(
            "not a description of a phone",
            where=where,
            expected=f"keys {', '.join(sorted(needed))}",
            got=got,
            hint="docs/estimate.md has an example",
        )
    for key, value in table.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if wanted[key] in ("int", "float") and not (is_number and 0 < value < float("inf")):
            raise InputError(f"{key} is no positive number", where=where, got=repr(value))
        if wanted[key] == "str" and not isinstance(value, str):
            raise InputError(f"{key} is no text", where=where, got=repr(value))
    return kind(**table)
