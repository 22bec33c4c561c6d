"""What a verification found, layer by layer and end to end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from phonebit.verification.default_kernels import DefaultKernels
from phonebit.verification.differences import Differences
from phonebit.verification.source_trace import FrameworkName

Verdict = Literal[
    "equal", "within tolerance", "exact zeros", "float ties", "lower precision", "mismatch"
]
"""equal: to the last bit. within tolerance: real values that differ by rounding. exact zeros: bits
that differ only where the source's sign is 0, which the file counts as +1. float ties: bits that
differ only there and where the compared real value is zero up to rounding. lower precision: further
apart, as the precision permits that was asked for. mismatch: anything else."""

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
        values: real-valued output elements compared.
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
        mismatch: whether there is a difference beyond tolerance, ties and zeros, too many of them,
            or one between devices.
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
    mismatch: bool = False
    differences: Differences = field(default_factory=Differences)

    @property
    def verdict(self) -> Verdict:
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
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the verdict; of the differences only their first places."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "differences"}
        places = [asdict(place) for place in self.differences.places]
        return {**kept, "verdict": self.verdict, "places": places}


@dataclass
class EndToEndCheck:
    """Whole forward passes compared with the source's outputs.

    Attributes:
        samples: inputs compared.
        same_argmax: of those, how many got the same best class in every output.
        max_abs_difference: over all output elements; where the output is a softmax, over the
            logits that it reads.
        tolerance: that is allowed where no float tie or exact zero explains a difference.
        precision: that was asked for; if it is not "exact", it explains every difference.
        weights_class_changes: inputs for which the source gives another best class with the
            rounded weights of the file, with which all else here is compared, than with its own.
        weights_difference: largest difference between these two outputs of the source.
        samples_with_ties: inputs with a float tie or an exact zero on their way.
        ties: the float ties where engine and source first part, over all inputs, each as
            "name[sample, row, column, channel] = the source's value before the sign".
        zeros: how many exact zeros there are where engine and source first part.
        unexplained: inputs whose results differ beyond the tolerance, or in their argmax, without
            a float tie or an exact zero as the cause.
        other_device: output elements that are not what the first device computed.
    """

    samples: int = 0
    same_argmax: int = 0
    max_abs_difference: float = 0.0
    tolerance: float = 0.0
    precision: str = "exact"
    weights_class_changes: int = 0
    weights_difference: float = 0.0
    samples_with_ties: int = 0
    ties: list[str] = field(default_factory=list)
    zeros: int = 0
    unexplained: list[int] = field(default_factory=list)
    other_device: int = 0

    @property
    def verdict(self) -> Verdict:
        """The result in one term."""
        if self.unexplained or self.other_device:
            return "mismatch"
        if self.max_abs_difference > self.tolerance or self.same_argmax < self.samples:
            if self.precision != "exact":
                return "lower precision"
            return "exact zeros" if self.zeros and not self.ties else "float ties"
        return "within tolerance" if self.max_abs_difference > 0.0 else "equal"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the verdict."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass
class DeviceCheck:
    """The file on one device.

    Attributes:
        device: what served it, e.g. "cpu:avx512", "gpu:0 NVIDIA H200".
        layers: one check a layer, in execution order.
        end_to_end: the whole network.
    """

    device: str
    layers: list[LayerCheck]
    end_to_end: EndToEndCheck

    @property
    def short_name(self) -> str:
        """The device without its maker's name: "gpu:0"."""
        return self.device.split(" ", 1)[0]

    @property
    def first_mismatch(self) -> LayerCheck | None:
        """The first layer whose results part, in execution order."""
        return next((layer for layer in self.layers if layer.mismatch), None)

    @property
    def passed(self) -> bool:
        """Whether there is no mismatch."""
        return self.first_mismatch is None and self.end_to_end.verdict != "mismatch"

    @property
    def ties(self) -> int:
        """Float ties over all layers."""
        return sum(layer.ties for layer in self.layers)

    @property
    def zeros(self) -> int:
        """Exact zeros over all layers."""
        return sum(layer.zeros for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        first = self.first_mismatch
        return {
            "device": self.device,
            "passed": self.passed,
            "first_mismatch": first.name if first else None,
            "ties": self.ties,
            "zeros": self.zeros,
            "layers": [layer.to_dict() for layer in self.layers],
            "end_to_end": self.end_to_end.to_dict(),
        }


@dataclass
class VerificationReport:
    """Result of ``phonebit.verification.verify``.

    Attributes:
        source: the checkpoint.
        file: the ``.pbit`` file.
        framework: that trained the checkpoint: "Keras" or "PyTorch".
        reference: "framework" if the values are the training framework's own, "interpreter" if
            they are those of the converter's reference interpreter.
        reason: why it is not the framework, or "".
        samples: inputs used.
        date: when, ISO 8601 in UTC.
        devices: one check a device; all devices were given the same operands.
        precision: with which the file was loaded, as asked for.
        default_kernels: how the framework's default kernels differ from its reference kernels;
            None where it has no reference kernels.
    """

    source: str
    file: str
    framework: FrameworkName
    reference: Literal["framework", "interpreter"]
    reason: str
    samples: int
    date: str
    devices: list[DeviceCheck]
    precision: str = "exact"
    default_kernels: DefaultKernels | None = None

    @property
    def layers(self) -> list[LayerCheck]:
        """The layers on the first device."""
        return self.devices[0].layers

    @property
    def end_to_end(self) -> EndToEndCheck:
        """The whole network on the first device."""
        return self.devices[0].end_to_end

    @property
    def first_mismatch(self) -> LayerCheck | None:
        """The first layer whose results part on any device, in execution order."""
        found = [device.first_mismatch for device in self.devices]
        mismatch = [layer for layer in found if layer is not None]
        return min(mismatch, key=lambda layer: layer.index, default=None)

    @property
    def passed(self) -> bool:
        """Whether there is no mismatch on any device."""
        return all(device.passed for device in self.devices)

    @property
    def ties(self) -> int:
        """Float ties over all layers, on the device that has most."""
        return max(device.ties for device in self.devices)

    @property
    def zeros(self) -> int:
        """Exact zeros over all layers; they are the source's, so every device has the same."""
        return max(device.zeros for device in self.devices)

    @property
    def stored_as(self) -> list[str]:
        """How layers' weights are rounded in the file: of "f16", "i8"."""
        return sorted({layer.stored_as for layer in self.layers if layer.stored_as})

    @property
    def rounding(self) -> str:
        """What the rounding of weights in the file does to the source, or ""."""
        rounded = [layer for layer in self.layers if layer.stored_as]
        if not rounded:
            return ""
        worst = max(rounded, key=lambda layer: layer.rounding)
        whole = self.end_to_end
        return (
            f"{len(rounded)} layer{'s' if len(rounded) > 1 else ''} as "
            f"{' and '.join(self.stored_as)} change sums by at most {worst.rounding:.1e} of the "
            f"largest ({worst.name}) and the class of {whole.weights_class_changes:,} of "
            f"{whole.samples:,} inputs, outputs by at most {whole.weights_difference:.2g}"
        )

    @property
    def exceptions(self) -> str:
        """What a passed file does not have in common with its source, or ""."""
        parts = []
        if self.stored_as:
            parts.append(f"weights rounded to {' and '.join(self.stored_as)}")
        lower = sum(layer.lower > 0 for layer in self.layers)
        if lower:
            parts.append(f"the lower precision of {lower} layer{'s' if lower > 1 else ''}")
        if self.ties:
            parts.append(f"up to {self.ties:,} float ties")
        if self.zeros:
            parts.append(f"{self.zeros:,} exact zeros")
        bits = sum(layer.bits for layer in self.layers)
        counted = f" in {bits:,} bits" if bits and (self.ties or self.zeros) else ""
        return f" but for {' and '.join(parts)}{counted}" if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        first = self.first_mismatch
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "devices"}
        return {
            **kept,
            "passed": self.passed,
            "first_mismatch": first.name if first else None,
            "ties": self.ties,
            "zeros": self.zeros,
            "default_kernels": self.default_kernels and self.default_kernels.to_dict(),
            "devices": [device.to_dict() for device in self.devices],
        }
