"""What the logs of trainings and evaluations say of where, when and with what they ran."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch


def now() -> str:
    """Date and time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe_machine(device: str) -> dict[str, Any]:
    """Processor or GPU, and versions; ``device`` is PyTorch's name of it."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine()
    return {
        "device": name,
        "platform": platform.platform(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "numpy": np.__version__,
        },
    }


def describe_file(path: Path) -> dict[str, Any]:
    """Name, size and SHA-256."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "size_bytes": path.stat().st_size, "sha256": digest}


def describe_evaluation(command: str, training: dict[str, Any]) -> dict[str, Any]:
    """Head of a results file: how the evaluation and the training before it were run.

    Args:
        command: of the evaluation.
        training: content of training.json.
    """
    import phonebit

    return {
        "command": command.strip(),
        "date": now()[:10],
        "versions": {
            "phonebit": phonebit.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "training": {
            "command": training["command"],
            "device": training["machine"]["device"],
            "date": training["started"][:10],
        },
    }
