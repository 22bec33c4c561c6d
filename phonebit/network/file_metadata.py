"""What a file says of its inputs and classes. Never affects the results.

Files have sections for it, which the runtime reads. Those of the first versions had it in their
JSON metadata instead; this module is where the two become one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phonebit.detection.head import DetectionHead
from phonebit.errors import InputError
from phonebit.images.preprocessing import Preprocessing
from phonebit.layer_info import TensorInfo

if TYPE_CHECKING:
    from phonebit import _runtime

LEVELS = 255


def parse_metadata(text: str) -> dict[str, Any]:
    """Metadata is optional and never trusted: what is not a JSON object counts as absent.

    Args:
        text: as the file holds it.

    Returns:
        The object, or an empty one.
    """
    try:
        metadata = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def labels_of(engine: _runtime.Network, metadata: dict[str, Any]) -> list[str]:
    """Class names, or an empty list."""
    labels = engine.labels or metadata.get("labels")
    return [str(label) for label in labels] if isinstance(labels, list) else []


def preprocessing_of(
    engine: _runtime.Network, inputs: Sequence[TensorInfo], metadata: dict[str, Any]
) -> dict[str, Preprocessing]:
    """The rules that the file tells, by input name.

    Args:
        engine: the loaded file.
        inputs: its inputs.
        metadata: its JSON metadata, which count where it has no section.

    Returns:
        At most one rule an input, its colour order chosen.
    """
    rules = {}
    for record in engine.preprocessing:
        info = inputs[record["input"]]
        rules[info.name] = Preprocessing.from_record(record, info.shape[2])
    old = None if rules else _old_rule(metadata)
    if old is None:
        return rules
    return {info.name: old.for_input(info) for info in inputs if info.dtype == "u8"}


def heads_of(engine: _runtime.Network, outputs: Sequence[TensorInfo]) -> dict[str, DetectionHead]:
    """What boxes the outputs mean, by output name, where the file tells."""
    return {
        outputs[record["output"]].name: DetectionHead.from_record(record)
        for record in engine.detection
    }


def _old_rule(metadata: dict[str, Any]) -> Preprocessing | None:
    """Of metadata that say {"input": {"scale": s, "offset": o}}: a level u stands for u * s + o."""
    meaning = metadata.get("input")
    if not isinstance(meaning, dict):
        return None
    scale, offset = meaning.get("scale"), meaning.get("offset")
    if not isinstance(scale, int | float) or not isinstance(offset, int | float):
        return None
    try:
        return Preprocessing((offset, offset + LEVELS * scale))
    except (InputError, OverflowError):
        return None
