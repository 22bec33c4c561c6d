"""What a source of energy readings is, and the errors of measuring.

There are two kinds. A *counter* counts energy since some moment; two readings give what flowed
between them. A *power* source tells the power of now; readings at a steady pace are integrated.
Readings become numbers in one place only, the runtime's ``EnergyTrace``
(runtime/energy/energy_trace.cpp).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from phonebit.errors import DeviceError

SourceKind = Literal["counter", "power"]


class EnergyError(DeviceError):
    """Energy cannot be measured: a source is unreadable, silent, or gives nonsense."""


class NoSourceError(EnergyError):
    """There is no source for what shall be measured; ``looked_for`` tells what was tried.

    Args:
        where: the device, or the name of a source.
        looked_for: why each kind of source is absent or does not fit, by its name.
        hint: what the user can do about it.
    """

    def __init__(self, where: str, looked_for: dict[str, str], hint: str | None = None) -> None:
        self.looked_for = looked_for
        tried = "; ".join(f"{kind}: {why}" for kind, why in looked_for.items())
        super().__init__("not measured: no source", where=where, got=tried or None, hint=hint)


@dataclass(frozen=True)
class Rail:
    """One supply that is measured.

    Attributes:
        name: as the machine calls it: "package-0", "VDD_IN".
        counted: whether it is a part of the sum; False where another rail contains it.
    """

    name: str
    counted: bool = True


class EnergySource(ABC):
    """One thing that can be read.

    Attributes:
        name: as ``--energy-source`` takes it: "rapl", "nvml:0".
        description: what it is, for people.
        rails: in the order of the readings.
        kind: "counter": readings are mJ that only grow; "power": readings are mW.
        unit_mj: smallest step of a counter that its interface can show; 0 of a power source. What
            it really does is measured: most counters move in larger steps.
        period_s: pace at which it is worth reading.
    """

    kind: SourceKind
    unit_mj: float
    period_s: float

    def __init__(self, name: str, description: str, rails: tuple[Rail, ...]) -> None:
        self.name = name
        self.description = description
        self.rails = rails

    @abstractmethod
    def read(self) -> tuple[float, ...]:
        """A reading of every rail: mJ since the first reading's origin, or mW.

        Raises:
            EnergyError: if it cannot be read, or what it says is no number.
        """
