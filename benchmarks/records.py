"""Where results are kept in git, and how: JSON with one record per line."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any, Final

from benchmarks import ROOT
from phonebit.devices.environment import commit, environment

RESULTS: Final = ROOT / "benchmarks" / "results"
RECORD_WIDTH: Final = 800
"""Characters: what fits stands on a line of its own."""

TITLES: Final = {
    "vgg16": "VGG16",
    "birealnet18": "Bi-Real-18",
    "yolov2_tiny": "YOLOv2-Tiny",
    "googlenet": "GoogLeNet",
    "alexnet": "AlexNet",
    "quicknet": "QuickNet",
    "quicknet_large": "QuickNetLarge",
}
"""Names of networks in tables."""

Record = dict[str, Any]
"""A JSON object: a document of results, or a part of one."""
PAPER: Final[Record] = json.loads((ROOT / "benchmarks" / "paper.json").read_text())
"""What the PhoneBit paper measured."""


def read_results(file: str | Path) -> Record:
    """The content of a results file, by its name in ``benchmarks/results`` or its path."""
    document: Record = json.loads((RESULTS / file).read_text())
    return document


def write_results(path: Path, document: Record) -> None:
    """Writes a results file; readers find the old one or the new one, never a part."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(as_lines(document) + "\n")
    temporary.replace(path)


def run_context(device: str = "cpu") -> Record:
    """Date, machine and versions for a results file; of a device of OpenCL, its driver too."""
    today = {"date": datetime.date.today().isoformat()}
    return today | environment(device) | {"commit": commit(ROOT)}  # PhoneBit may be installed


def provenance(context: Record, command: str, by_opencl: bool = False) -> str:
    """Where a table's numbers are from: machine, commit, day and command, by a ``run_context``.

    ``by_opencl``: OpenCL's driver must be told, or that it is not known.
    """
    generation = context.get("cpu_generation")
    processor = f"{context['cpu']} ({generation})" if generation else context["cpu"]
    parts = [f"{processor}, {context['cores']} cores"]
    if "gpu" in context:
        parts.append(f"{context['gpu']}, driver {context.get('driver') or 'not recorded'}")
    if "opencl" in context:
        driver = context["opencl"]
        parts.append("{platform}, {driver}, compiling for {compiles_for}".format(**driver))
    elif by_opencl:
        parts.append("OpenCL driver not recorded")
    parts.append(f"commit {context.get('commit') or 'not recorded'}")
    return f"{'; '.join([*parts, context['date']])}: `{command}`"


def as_lines(value: Any, indent: str = "") -> str:
    """JSON in which a value that fits on a line stands on one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= RECORD_WIDTH or not isinstance(value, dict | list):
        return text
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {as_lines(entry, inner)}" for key, entry in value.items()]
    else:
        lines = [as_lines(entry, inner) for entry in value]
    return f"{text[0]}\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}{text[-1]}"
