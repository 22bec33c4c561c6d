"""A preprocessing rule as people read it: by the names of its TOML file, and as a line of text."""

from __future__ import annotations

from typing import Any

from phonebit.images.preprocessing import Preprocessing, Resize
from phonebit.images.settings import RESIZE_NAMES


def as_settings(rule: Preprocessing) -> dict[str, Any]:
    """The rule under the names and with the texts that a TOML file has for it; JSON-ready."""
    settings: dict[str, Any] = {"range": list(rule.range)}
    settings["mean"], settings["std"] = list(rule.mean), list(rule.std)
    if rule.color is not None:
        settings["color"] = rule.color.name.lower()
    resize = next(name for name, kind in RESIZE_NAMES.items() if kind is rule.resize)
    number = {Resize.SHORTER_SIDE: rule.resize_to, Resize.LETTERBOX: rule.fill_level}
    settings["resize"] = f"{resize}:{number[rule.resize]}" if rule.resize in number else resize
    settings["interpolation"] = rule.interpolation.name.lower()
    return settings


def rule_text(rule: Preprocessing) -> str:
    """One line: ``rgb, shorter:256, bilinear, levels 0..255 are 0..1, minus 0.5, over 0.25``."""
    settings = as_settings(rule)
    low, high = (f"{end:.6g}" for end in rule.range)
    parts = [settings.get("color", ""), settings["resize"], settings["interpolation"]]
    parts.append(f"levels 0..255 are {low}..{high}")
    if rule.mean != (0.0,):
        parts.append("minus " + " ".join(f"{mean:.6g}" for mean in rule.mean))
    if rule.std != (1.0,):
        parts.append("over " + " ".join(f"{std:.6g}" for std in rule.std))
    return ", ".join(filter(None, parts))
