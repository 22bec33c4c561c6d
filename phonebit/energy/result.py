"""What a measurement of energy found, as numbers and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from phonebit.energy.result_text import energy_lines
from phonebit.energy.source import EnergySource, SourceKind

if TYPE_CHECKING:
    from phonebit import _runtime


@dataclass(frozen=True)
class EnergyResult:
    """Energy of so many frames, and of doing nothing for comparison.

    Attributes:
        source: name of the source.
        description: what it is, for people.
        chosen: why this source.
        kind: "counter" or "power" (sampled and integrated).
        rails: mJ of each rail; a rail not in ``counted`` lies within others.
        counted: rails that are the sum.
        frames: inputs that went through the network.
        busy: the energy while they did.
        idle: the energy of a window without work just before; None if it was not measured.
    """

    source: str
    description: str
    chosen: str
    kind: SourceKind
    rails: dict[str, float]
    counted: tuple[str, ...]
    frames: int
    busy: _runtime.EnergySpan
    idle: _runtime.EnergySpan | None

    @classmethod
    def of(
        cls,
        source: EnergySource,
        chosen: str,
        frames: int,
        busy: _runtime.EnergySpan,
        idle: _runtime.EnergySpan | None,
    ) -> EnergyResult:
        """The result of two windows."""
        names = [rail.name for rail in source.rails]
        return cls(
            source.name,
            source.description,
            chosen,
            source.kind,
            dict(zip(names, busy.rails_mj, strict=True)),
            tuple(rail.name for rail in source.rails if rail.counted),
            frames,
            busy,
            idle,
        )

    @property
    def energy_mj(self) -> float:
        """Energy of the window with work."""
        return self.busy.energy_mj

    @property
    def window_s(self) -> float:
        """Length of the window with work."""
        return self.busy.window_s

    @property
    def resolution_mj(self) -> float:
        """Largest step of the source in that window."""
        return self.busy.step_mj

    @property
    def uncertainty(self) -> float:
        """The resolution as a share of the energy. The sensor's own error is not in it."""
        return self.busy.uncertainty

    @property
    def mean_mw(self) -> float:
        """Mean power with work."""
        return self.busy.mean_mw

    @property
    def fps(self) -> float:
        """Frames per second."""
        return self.frames / self.window_s

    @property
    def mj_per_frame(self) -> float:
        """Energy of a frame, everything that the source measures included."""
        return self.energy_mj / self.frames

    @property
    def fps_per_watt(self) -> float:
        """Frames per second and watt: frames per joule."""
        return 1e3 / self.mj_per_frame

    @property
    def idle_mw(self) -> float | None:
        """Mean power without work."""
        return None if self.idle is None else self.idle.mean_mw

    @property
    def net_mw(self) -> float | None:
        """Mean power with work above that without."""
        return None if self.idle is None else self.mean_mw - self.idle.mean_mw

    @property
    def net_mj_per_frame(self) -> float | None:
        """Energy of a frame above idle; None also if that is below the resolution."""
        if self.net_mw is None or self.net_mw <= self._net_error_mw:
            return None
        return self.net_mw / self.fps

    @property
    def net_fps_per_watt(self) -> float | None:
        """Frames per joule above idle; None as above."""
        return None if self.net_mj_per_frame is None else 1e3 / self.net_mj_per_frame

    @property
    def net_uncertainty(self) -> float | None:
        """Both windows' resolutions as a share of the power above idle; None as above."""
        if self.net_mw is None or self.net_mj_per_frame is None:
            return None
        return self._net_error_mw / self.net_mw

    @property
    def _net_error_mw(self) -> float:
        idle_mw = 0.0 if self.idle is None else self.idle.step_mj / self.idle.window_s
        return self.busy.step_mj / self.busy.window_s + idle_mw

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; numbers that were not measured are null."""
        return {
            "measured": True,
            "source": self.source,
            "description": self.description,
            "chosen": self.chosen,
            "kind": self.kind,
            "rails_mj": self.rails,
            "counted": list(self.counted),
            "resolution_mj": self.resolution_mj,
            "update_ms": self.busy.update_s * 1e3,
            "window_s": self.window_s,
            "idle_window_s": None if self.idle is None else self.idle.window_s,
            "frames": self.frames,
            "energy_mj": self.energy_mj,
            "mean_mw": self.mean_mw,
            "idle_mw": self.idle_mw,
            "mj_per_frame": self.mj_per_frame,
            "fps": self.fps,
            "fps_per_watt": self.fps_per_watt,
            "uncertainty": self.uncertainty,
            "net_mw": self.net_mw,
            "net_mj_per_frame": self.net_mj_per_frame,
            "net_fps_per_watt": self.net_fps_per_watt,
            "net_uncertainty": self.net_uncertainty,
        }

    def lines(self) -> list[str]:
        """For people; see ``energy_lines``."""
        return energy_lines(self.to_dict())
