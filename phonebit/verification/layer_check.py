"""What a verification found at one layer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from phonebit.verification.differences import Differences

Outcome = Literal[
    "equal", "within tolerance", "exact zeros", "float ties", "lower precision", "mismatch"
]
"""equal: to the last bit. within tolerance: float values that differ by rounding. exact zeros: bits
that differ only where the source's sign is 0, which the file counts as +1. float ties: bits that
differ only there and where the compared float value is zero up to rounding. lower precision:
further apart, as the precision permits that was asked for. mismatch: anything else."""

Oracle = Literal["source", "source, rearranged", "source, rounded weights", "engine graph"]
"""What a layer's result was compared with. source: the value of the same name. source, rearranged:
the source's sign, computed in front of the pooling (or the like) that follows in the file. source,
rounded weights: what the source gives with the weights that the file stores as f16 or i8. engine
graph: the layer as the file defines it, executed by the reference interpreter, because the source
has no such value."""


@dataclass
class LayerCheck:
    """One layer, fed with the source's own values and judged alone.

    Attributes:
        index: place of the layer in the network.
        name: the training framework's layer name.
        kind: what it computes, e.g. "binary_conv2d".
        oracle: what it was compared with.
        values: real numbers compared: outputs, and of layers that end in bits values before these.
        wrong_values: of those, how many differ by more than the tolerance.
        max_abs_difference: of all of them.
        tolerance: that was allowed, in the same unit.
        worst: where the largest difference is: "value name[sample, row, column, channel]".
        bits: output bits compared.
        differing_bits: of those, float ties and exact zeros included.
        worst_bit: where the first bit differs that is neither, as ``worst``.
        ties: differing bits, and differing results of rounding, that are float ties.
        worst_tie: largest distance of a tie from zero, or from the middle of two integers, in the
            unit of the compared value.
        zeros: bits where the source's sign is 0, so that neither bit equals it.
        lower: values and bits that differ by more than the exact layer's could, in a layer that
            runs in the lower precision that was asked for.
        stored_as: of rounded weights: "f16" or "i8", else "".
        rounding: largest change of the layer's sums by the rounding of its weights, as a share of
            the largest sum.
        other_device: elements that are not what the first device computed from the same operands.
        thresholds: channels whose threshold was asked for on both sides.
        wrong_thresholds: of those, where the source decides otherwise.
        worst_threshold: the first of them: the channel, the value and both decisions.
        constants: how the layer's numbers differ from those that the source gives, a text each.
        mismatch: whether there is a difference beyond tolerance, ties and zeros, too many of them,
            one between devices or one of constants.
        differences: where they are.
    """

    index: int
    name: str
    kind: str
    oracle: Oracle = "source"
    values: int = 0
    wrong_values: int = 0
    max_abs_difference: float = 0.0
    tolerance: float = 0.0
    worst: str = ""
    bits: int = 0
    differing_bits: int = 0
    worst_bit: str = ""
    ties: int = 0
    worst_tie: float = 0.0
    zeros: int = 0
    lower: int = 0
    stored_as: str = ""
    rounding: float = 0.0
    other_device: int = 0
    thresholds: int = 0
    wrong_thresholds: int = 0
    worst_threshold: str = ""
    constants: list[str] = field(default_factory=list)
    mismatch: bool = False
    differences: Differences = field(default_factory=Differences)

    @property
    def verdict(self) -> Outcome:
        """The layer's result in one term."""
        if self.mismatch:
            return "mismatch"
        if self.lower:
            return "lower precision"
        if self.ties:
            return "float ties"
        if self.differing_bits:
            return "exact zeros"
        return "within tolerance" if self.max_abs_difference > 0.0 else "equal"

    @property
    def explanation(self) -> str:
        """By how much the layer differs, and where: a line of plain text."""
        parts = []
        if self.differing_bits:
            zeros = f", {self.zeros:,} exact zeros" if self.zeros else ""
            parts.append(
                f"{self.differing_bits:,} of {self.bits:,} bits differ"
                f" ({self.ties:,} of them float ties{zeros})"
            )
            if self.worst_bit:
                parts.append(f"first at {self.worst_bit}")
        if self.wrong_values:
            parts.append(
                f"largest difference {self.max_abs_difference:.3g} at {self.worst}, "
                f"allowed {self.tolerance:.3g}"
            )
        if self.other_device:
            parts.append(f"{self.other_device:,} elements are not what the first device computed")
        if self.wrong_thresholds:
            parts.append(
                f"{self.wrong_thresholds:,} of {self.thresholds:,} thresholds are wrong: "
                f"{self.worst_threshold}"
            )
        parts += self.constants
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the result; of the differences only their first places."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "differences"}
        places = [asdict(place) for place in self.differences.places]
        return {**kept, "verdict": self.verdict, "places": places}
