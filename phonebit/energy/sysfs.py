"""Files of Linux and Android that tell energy or power: RAPL, INA monitors, ODPM, batteries.

The C++ runtime reads them (runtime/energy, a file each), since phones measure without Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phonebit.energy.source import EnergyError, EnergySource, Rail
from phonebit.errors import DeviceError

if TYPE_CHECKING:
    from phonebit import _runtime


class SysfsSource(EnergySource):
    """One that the runtime has found.

    Args:
        source: of the runtime's ``discover_energy``.
    """

    def __init__(self, source: _runtime.EnergySource) -> None:
        rails = tuple(Rail(name, counted) for name, counted in source.rails)
        super().__init__(source.name, source.description, rails)
        self.kind = source.kind
        self.unit_mj = source.unit_mj
        self.period_s = source.period_s
        self._source = source

    def read(self) -> tuple[float, ...]:
        """Energy (mJ) or power (mW) of every rail."""
        try:
            return self._source.read()
        except DeviceError as error:
            raise EnergyError(str(error)) from None
