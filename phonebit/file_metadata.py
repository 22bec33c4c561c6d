"""A file's JSON metadata, as far as PhoneBit itself reads it. Never affects the results."""

from __future__ import annotations

import json
from typing import Any


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


def labels_of(metadata: dict[str, Any]) -> list[str]:
    """Class names, or an empty list."""
    labels = metadata.get("labels")
    return [str(label) for label in labels] if isinstance(labels, list) else []


def level_meaning_of(metadata: dict[str, Any]) -> tuple[float, float] | None:
    """(scale, offset), if the file tells: a picture level u stands for u * scale + offset."""
    meaning = metadata.get("input")
    if not isinstance(meaning, dict):
        return None
    scale, offset = meaning.get("scale"), meaning.get("offset")
    if not isinstance(scale, int | float) or not isinstance(offset, int | float):
        return None
    return float(scale), float(offset)
