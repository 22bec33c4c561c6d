"""What the logs of trainings and evaluations say of where, when and with what they ran."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def now() -> str:
    """Date and time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions(*packages: str) -> dict[str, str]:
    """Of Python and these packages."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def describe_machine(device: str, *packages: str) -> dict[str, Any]:
    """Processor or GPU, and versions; ``device`` is PyTorch's name of it."""
    name = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        import torch

        name = torch.cuda.get_device_name(device)
    return {"device": name, "platform": platform.platform(), "versions": versions(*packages)}


def describe_file(path: Path) -> dict[str, Any]:
    """Name, size and SHA-256."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "size_bytes": path.stat().st_size, "sha256": digest}


def finish_evaluation(
    module: str,
    output: Path,
    training: Mapping[str, Any],
    more: Mapping[str, Any],
    rows: list[dict[str, Any]],
    compared: tuple[str, str],
) -> int:
    """Writes the results of an evaluation; 1, and a line of text, if something differs.

    Args:
        module: the evaluation, as ``python -m`` takes it.
        output: file to write.
        training: content of training.json.
        more: what the results tell of the training besides its command, device and date.
        rows: the results, one for each network.
        compared: where a row says how many were compared, and each device how many were equal.
    """
    results = {
        "command": f"python -m {module} {shlex.join(sys.argv[1:])}".strip(),
        "date": now()[:10],
        "versions": versions("phonebit", "torch"),
        "training": {
            "command": training["command"],
            "device": training["machine"]["device"],
            "date": training["started"][:10],
            **more,
        },
        "networks": rows,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n")
    whole, equal = compared
    unequal = [
        f"{row['network']} on {device}: {row[whole] - result[equal]} {whole}"
        for row in rows
        for device, result in row["engine"].items()
        if result[equal] != row[whole]
    ]
    if unequal:
        print(f"not equal to PyTorch's: {'; '.join(unequal)}", file=sys.stderr)
    return 1 if unequal else 0
