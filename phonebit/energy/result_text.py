"""What a measurement of energy found, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def energy_lines(record: Mapping[str, Any]) -> list[str]:
    """The numbers of table IV, above idle, and what they rest on.

    Args:
        record: what ``EnergyResult.to_dict`` gives, or a phone's ``phonebit_bench --energy``.
    """
    text = [
        f"{digits(record['mean_mw'])} mW, {digits(record['mj_per_frame'])} mJ/frame, "
        f"{digits(record['fps_per_watt'])} FPS/W "
        f"(±{100 * record['uncertainty']:.1f} % by resolution)"
    ]
    if record["idle_mw"] is not None:
        text.append(_idle_line(record))
    text.append(f"source {record['source']} ({record['chosen']}): {record['description']}")
    steps = "counter steps" if record["kind"] == "counter" else "samples"
    pace = f", new every {digits(record['update_ms'])} ms" if "update_ms" in record else ""
    text.append(
        f"{record['window_s']:.1f} s, {record['frames']:,} frames, "
        f"{digits(record['energy_mj'] / 1e3)} J{_rails_text(record)}; "
        f"{steps} of {digits(record['resolution_mj'])} mJ{pace}"
    )
    return text


def _rails_text(record: Mapping[str, Any]) -> str:
    if "rails_mj" not in record:
        return ""
    rails = ", ".join(
        f"{name} {digits(mj / 1e3)} J" + ("" if name in record["counted"] else " (a part)")
        for name, mj in record["rails_mj"].items()
    )
    return f" ({rails})"


def _idle_line(record: Mapping[str, Any]) -> str:
    if record["net_mj_per_frame"] is None:
        return f"idle {digits(record['idle_mw'])} mW: the work cannot be told from it"
    return (
        f"idle {digits(record['idle_mw'])} mW; above it {digits(record['net_mw'])} mW, "
        f"{digits(record['net_mj_per_frame'])} mJ/frame, "
        f"{digits(record['net_fps_per_watt'])} FPS/W "
        f"(±{100 * record['net_uncertainty']:.1f} %)"
    )


def digits(value: float | None) -> str:
    """Four digits or more, never an exponent: ``0.0123``, ``12.35``, ``98,765``."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.4g}"
