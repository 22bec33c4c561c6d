"""What a verification found, layer by layer and end to end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from phonebit.verification.constants import ConstantsCheck
from phonebit.verification.default_kernels import DefaultKernels
from phonebit.verification.layer_check import LayerCheck, Outcome
from phonebit.verification.source_trace import FrameworkName


@dataclass
class EndToEndCheck:
    """Whole inferences compared with the source's outputs.

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
        ties: the float ties where engine and source first differ, over all inputs, each as
            "name[sample, row, column, channel] = the source's value before the sign".
        zeros: how many exact zeros there are where engine and source first differ.
        unexplained: inputs whose results differ beyond the tolerance without a float tie or an
            exact zero as the cause.
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
    def verdict(self) -> Outcome:
        """The result in one term."""
        if self.unexplained or self.other_device:
            return "mismatch"
        if self.max_abs_difference > self.tolerance or self.same_argmax < self.samples:
            if self.precision != "exact":
                return "lower precision"
            return "exact zeros" if self.zeros and not self.ties else "float ties"
        return "within tolerance" if self.max_abs_difference > 0.0 else "equal"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form with the result."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass
class DeviceCheck:
    """The file on one device.

    Attributes:
        device: what computed it, e.g. "cpu:avx512", "gpu:0 NVIDIA H200".
        layers: one check per layer, in execution order.
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
        """The first layer whose results differ, in execution order."""
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


@dataclass(repr=False)
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
        devices: one check per device; all devices were given the same operands.
        precision: with which the file was loaded, as asked for.
        default_kernels: how the framework's default kernels differ from its reference kernels;
            None where it has no reference kernels.
        constants: whether the file's are those that the source gives.
        environment: the machine, the versions, and the driver of each GPU.
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
    constants: ConstantsCheck = field(default_factory=ConstantsCheck)
    environment: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        devices = " and ".join(device.short_name for device in self.devices)
        first = self.first_mismatch
        found = f"passed{self.exceptions}" if self.passed else "mismatch"
        found += f" at layer {first.name}" if first else ""
        return (
            f"VerificationReport({self.file!r} compared with {self.source!r}: {found}; "
            f"{len(self.layers)} layers, {self.samples:,} inputs, {devices})"
        )

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
        """The first layer whose results differ on any device, in execution order."""
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
            "constants": self.constants.to_dict(),
            "default_kernels": self.default_kernels and self.default_kernels.to_dict(),
            "devices": [device.to_dict() for device in self.devices],
        }
