"""Energy per frame: sources of energy readings, and a meter that reads them around work.

::

    from phonebit import Network, energy

    network = Network.load("model.pbit")
    result = energy.measure(network, images)
    print(result.mj_per_frame, result.fps_per_watt, result.source)

``EnergyMeter(source).measure(work, frames)`` measures anything else.
"""

from phonebit.energy.choice import choose_source
from phonebit.energy.discovery import Finding, discover
from phonebit.energy.measuring import measure
from phonebit.energy.meter import EnergyMeter
from phonebit.energy.result import EnergyResult
from phonebit.energy.result_text import energy_lines
from phonebit.energy.source import EnergyError, EnergySource, NoSourceError, Rail

__all__ = [
    "EnergyError",
    "EnergyMeter",
    "EnergyResult",
    "EnergySource",
    "Finding",
    "NoSourceError",
    "Rail",
    "choose_source",
    "discover",
    "energy_lines",
    "measure",
]
