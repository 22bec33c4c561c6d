"""What a benchmark's JSON says of the machine it ran on."""

from __future__ import annotations

import datetime
from typing import Any

from phonebit.devices.environment import environment


def run_context(device: str = "cpu") -> dict[str, Any]:
    """Date, machine and versions for a results file; of a device of OpenCL, its driver too."""
    return {"date": datetime.date.today().isoformat()} | environment(device)
