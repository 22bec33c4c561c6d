"""Two sources read as one: a graphics card and the processor that works with it."""

from __future__ import annotations

from collections.abc import Sequence

from phonebit.energy.source import EnergyError, EnergySource, Rail


class SummedSource(EnergySource):
    """The rails of several counters, none of which sees what another sees.

    Args:
        sources: counters; one of power cannot be added to them.

    Raises:
        EnergyError: if one of them samples power.
    """

    kind = "counter"

    def __init__(self, sources: Sequence[EnergySource]) -> None:
        for source in sources:
            if source.kind != "counter":
                raise EnergyError(
                    "power that is sampled cannot be added to a counter of energy",
                    where=source.name,
                    got=source.description,
                )
        rails = tuple(
            Rail(f"{source.name} {rail.name}", rail.counted)
            for source in sources
            for rail in source.rails
        )
        name = "+".join(source.name for source in sources)
        super().__init__(name, "; ".join(source.description for source in sources), rails)
        self.unit_mj = max(source.unit_mj for source in sources)
        self.period_s = min(source.period_s for source in sources)
        self._sources = sources

    def read(self) -> tuple[float, ...]:
        """Energy (mJ) of every rail of every source."""
        return tuple(mj for source in self._sources for mj in source.read())
