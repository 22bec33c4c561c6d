"""Kernel presets: tables of ``bnn_kernels`` whose kernels run in place of the usual ones."""

from __future__ import annotations

import re
from typing import Literal

from phonebit.bnn_kernels.sources import FOLDER

Kernels = Literal["tuned", "paper"]


def preset_lines(preset: Kernels, device_key: str) -> str:
    """The lines of a preset, about one device by name: they go before lines about any device.

    Args:
        preset: the name of a ``.table`` file.
        device_key: from ``phonebit.devices.gpus.device_key``.
    """
    name = re.sub(r"[#\x00- ]", "_", device_key.partition(" | ")[0])  # as tables write names
    lines = []
    for line in (FOLDER / f"{preset}.table").read_text(encoding="utf-8").splitlines():
        fields = line.partition("#")[0].split()
        if fields:
            lines.append(" ".join([*fields[:4], name, *fields[5:]]))
    return "\n".join(lines)
