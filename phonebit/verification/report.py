"""What a verification found, layer by layer and end to end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["equal", "within tolerance", "float ties", "parted"]
"""equal: to the last bit. within tolerance: real values that differ by rounding. float ties: bits
that differ only where the compared real value is zero up to rounding. parted: anything else."""

Oracle = Literal["source", "source, rearranged", "engine graph"]
"""What a layer's result was compared with. source: the value of the same name. source, rearranged:
the source's sign, computed in front of the pooling (or the like) that follows in the file. engine
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
        values: real-valued output elements compared.
        max_abs_difference: of those.
        tolerance: that was allowed, in the same unit.
        worst: where the largest difference is: "value name[sample, row, column, channel]".
        bits: output bits compared.
        differing_bits: of those.
        worst_bit: where the first bit differs that is no float tie, as ``worst``.
        ties: differing bits that are float ties.
        worst_tie: largest distance from zero of a tie, in the unit of the compared value.
        parted: whether a difference is neither within the tolerance nor a float tie.
    """

    index: int
    name: str
    kind: str
    oracle: Oracle = "source"
    values: int = 0
    max_abs_difference: float = 0.0
    tolerance: float = 0.0
    worst: str = ""
    bits: int = 0
    differing_bits: int = 0
    worst_bit: str = ""
    ties: int = 0
    worst_tie: float = 0.0
    parted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The layer's result in one term."""
        if self.parted:
            return "parted"
        if self.differing_bits:
            return "float ties"
        return "within tolerance" if self.max_abs_difference > 0.0 else "equal"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the verdict."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass
class EndToEndCheck:
    """Whole forward passes compared with the source's outputs.

    Attributes:
        samples: inputs compared.
        same_argmax: of those, how many got the same best class in every output.
        max_abs_difference: over all output elements; where the output is a softmax, over the
            logits that it reads.
        tolerance: that is allowed where no float tie explains a difference.
        samples_with_ties: inputs with a float tie on their way.
        ties: the float ties where engine and source first part, over all inputs, each as
            "name[sample, row, column, channel] = the source's value before the sign".
        unexplained: inputs whose results differ beyond the tolerance, or in their argmax, without
            a float tie as the cause.
    """

    samples: int = 0
    same_argmax: int = 0
    max_abs_difference: float = 0.0
    tolerance: float = 0.0
    samples_with_ties: int = 0
    ties: list[str] = field(default_factory=list)
    unexplained: list[int] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The result in one term."""
        if self.unexplained:
            return "parted"
        if self.max_abs_difference > self.tolerance or self.same_argmax < self.samples:
            return "float ties"
        return "within tolerance" if self.max_abs_difference > 0.0 else "equal"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the verdict."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass
class VerificationReport:
    """Result of ``phonebit.verification.verify``.

    Attributes:
        source: the checkpoint.
        file: the ``.pbit`` file.
        reference: "framework" if the values are the training framework's own, "interpreter" if
            they are those of the converter's reference interpreter.
        reason: why it is not the framework, or "".
        samples: inputs used.
        layers: one check a layer, in execution order.
        end_to_end: the whole network.
    """

    source: str
    file: str
    reference: Literal["framework", "interpreter"]
    reason: str
    samples: int
    layers: list[LayerCheck]
    end_to_end: EndToEndCheck

    @property
    def first_parted(self) -> LayerCheck | None:
        """The first layer whose results part, in execution order."""
        return next((layer for layer in self.layers if layer.parted), None)

    @property
    def passed(self) -> bool:
        """Whether nothing parted."""
        return self.first_parted is None and self.end_to_end.verdict != "parted"

    @property
    def ties(self) -> int:
        """Float ties over all layers."""
        return sum(layer.ties for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        first = self.first_parted
        return {
            "source": self.source,
            "file": self.file,
            "reference": self.reference,
            "reason": self.reason,
            "samples": self.samples,
            "passed": self.passed,
            "first_parted": first.name if first else None,
            "ties": self.ties,
            "layers": [layer.to_dict() for layer in self.layers],
            "end_to_end": self.end_to_end.to_dict(),
        }
