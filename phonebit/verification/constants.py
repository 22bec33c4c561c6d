"""The constants of a file next to those that its source gives.

The source is converted once more, as the file was, and every number of the file is compared:
weights, scales, thresholds, limits, windows. That finds what no input shows, however small, and
proves that the file is what the converter makes of this source. Whether that is right is what the
other checks ask: they compare with the source's own values and operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, Final

import numpy as np

from phonebit.converter.convert import prepare_source
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Input, Quantize
from phonebit.converter.origins import Plane, planes
from phonebit.converter.passes.decide_zeros import drop_zero, has_zero_level
from phonebit.converter.passes.pipeline import FloatWeights, run_pipeline
from phonebit.converter.reader import graph_from_contents
from phonebit.converter.writer import to_contents
from phonebit.errors import ConversionError, VerificationError
from phonebit.format.records import DataType
from phonebit.verification.source_trace import Array

ROUNDING: Final = 1e-6
"""Real numbers may differ by this share of themselves, or by a tenth of it of the largest of their
array: another machine's functions and sums round otherwise."""
SHOWN: Final = 5


@dataclass
class ConstantsCheck:
    """What the comparison of constants found.

    Attributes:
        differing: what differs, one text for each array or number, by the layer's place.
        compared: layers compared.
        unknown: names of layers that the conversion makes in another form, which are not compared:
            another version of the converter wrote the file.
        reason: why nothing is compared, or "".
    """

    differing: dict[int, list[str]] = field(default_factory=dict)
    compared: int = 0
    unknown: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def text(self) -> str:
        """The result in a sentence."""
        if self.reason:
            return f"not compared: {self.reason}"
        parts = [f"those that the source gives in {self.compared - len(self.differing):,} layers"]
        if self.differing:
            parts.append(f"others in {len(self.differing):,}")
        if self.unknown:
            shown = ", ".join(self.unknown[:SHOWN]) + (", ..." if self.unknown[SHOWN:] else "")
            parts.append(
                f"not compared in {len(self.unknown):,} that this version converts in another way "
                f"({shown}); convert the source again to compare them"
            )
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; the differences are those of the layers."""
        kept = asdict(self)
        kept["differing"] = len(self.differing)
        return {**kept, "text": self.text}


def check_constants(file: Graph, source: Graph) -> ConstantsCheck:
    """Compare all constants.

    Args:
        file: the file's graph.
        source: the source graph.
    """
    check = ConstantsCheck()
    try:
        expected = _converted(file, source)
    except (ConversionError, VerificationError) as error:
        check.reason = f"the source cannot be converted again: {str(error).splitlines()[0]}"
        return check
    others = {tuple(node.outputs): node for node in expected.nodes}
    for index, node in enumerate(n for n in file.nodes if not isinstance(n.op, Input)):
        other = others.get(tuple(node.outputs))
        found = None if other is None else _differences(node, other)
        if found is None:
            check.unknown.append(node.name)
            continue
        check.compared += 1
        if found:
            check.differing[index] = found
    return check


def _converted(file: Graph, source: Graph) -> Graph:
    """The source as a file, with the choices that were made for the given one."""
    reads_levels = any(
        file.types[name].dtype == DataType.U8 and source.types[name].dtype == DataType.F32
        for name in file.inputs
    )
    rule = next(iter(file.preprocessing.values()), None) if reads_levels else None
    graph = prepare_source(source, "u8" if reads_levels else "f32", rule)
    for node in list(graph.nodes):
        if isinstance(node.op, Quantize) and _counts_zeros(node, file):
            drop_zero(graph, node, node.op)
    result = run_pipeline(graph, check=False, zeros="exact", float_weights=_float_weights(file))
    return graph_from_contents(to_contents(result.graph))


def _counts_zeros(node: Node, file: Graph) -> bool:
    """Whether the file has one plane of a sign that has a level of its own for 0."""
    if not isinstance(node.op, Quantize) or not has_zero_level(node.op):
        return False
    value, present = node.outputs[0], planes(file.origins)
    return Plane(value, 0) in present and Plane(value, 1) not in present


def _float_weights(file: Graph) -> FloatWeights:
    stored = {node.op.stored_as for node in file.nodes if isinstance(node.op, Conv2D)}
    return "i8" if DataType.I8 in stored else "f16" if DataType.F16 in stored else "f32"


def _differences(node: Node, other: Node) -> list[str] | None:
    """What differs, or None if the two are not of the same form."""
    ours, theirs = (dict(_leaves(each.op, "")) for each in (node, other))
    forms = [
        (each.inputs, {path: _form(value) for path, value in leaves.items()})
        for each, leaves in ((node, ours), (other, theirs))
    ]
    if forms[0] != forms[1]:
        return None
    found = (_difference(path, ours[path], theirs[path]) for path in ours)
    return [text for text in found if text]


def _leaves(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All numbers and arrays below ``thing``, by the way to them."""
    if is_dataclass(thing):
        yield f"{path}/type", type(thing)
        for each in fields(thing):
            yield from _leaves(getattr(thing, each.name), f"{path}.{each.name}".lstrip("."))
    elif isinstance(thing, list):
        for index, each in enumerate(thing):
            yield from _leaves(each, f"{path}[{index}]")
    else:
        yield path, thing


def _form(value: Any) -> Any:
    """What must be the same before values can be compared."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.kind
    return value if isinstance(value, type | Enum) else isinstance(value, float | int)


def _difference(path: str, value: Any, expected: Any) -> str:
    """How a number or array differs, or ""."""
    if not isinstance(value, np.ndarray | float):
        return "" if value == expected else f"{path} is {value} instead of {expected}"
    ours, theirs = (np.asarray(each, np.float64) for each in (value, expected))
    wrong = _wrong(ours, theirs)
    if not wrong.any():
        return ""
    if not ours.shape:
        return f"{path} is {float(ours):.9g} instead of {float(theirs):.9g}"
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.nan_to_num(np.abs(ours - theirs), nan=np.inf), -1)
    place = tuple(map(int, np.unravel_index(int(distance.argmax()), ours.shape)))
    return (
        f"{np.count_nonzero(wrong):,} of {ours.size:,} numbers of {path} differ, most at "
        f"{list(place)}: {ours[place]:.9g} instead of {theirs[place]:.9g}"
    )


def _wrong(ours: Array, theirs: Array) -> Array:
    """Where numbers differ by more than rounding."""
    same = ours == theirs
    finite = np.abs(theirs[np.isfinite(theirs)])
    allowed = np.maximum(ROUNDING * np.abs(theirs), ROUNDING / 10 * finite.max(initial=0.0))
    with np.errstate(invalid="ignore"):
        close = np.isfinite(theirs) & (np.abs(ours - theirs) <= allowed)
    return np.asarray(~(same | close))
