"""What runs on PhoneBit of a network that another runtime runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from phonebit.converter.report import ConversionReport

WITHOUT_BINARY: Final = "has no binary layer"
"""Why a part stays where it is that could be converted."""


@dataclass(frozen=True)
class AcceleratedPart:
    """A part that runs on PhoneBit.

    Attributes:
        name: of the module or node, "" for the whole; "features.0 to features.4" for several.
        layers: operators of its file.
        binary_layers: those that multiply -1/+1 by -1/+1.
        binary_mac_share: share of its multiply-accumulates that is binary, 0..1.
        notes: of its conversion.
    """

    name: str
    layers: int
    binary_layers: int
    binary_mac_share: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, report: ConversionReport) -> AcceleratedPart:
        """What a conversion says of a part."""
        binary = sum(bool(layer.binary) for layer in report.layers)
        notes = tuple(report.notes)
        return cls(name, len(report.layers), binary, report.binary_mac_share, notes)

    def __str__(self) -> str:
        """One line."""
        name = self.name or "the whole network"
        share = f"{100 * self.binary_mac_share:.1f} % of its MACs"
        text = f"{name}: {self.layers} layers, {self.binary_layers} binary ({share})"
        return "; ".join([text, *self.notes])


@dataclass
class AccelerationReport:
    """What runs on PhoneBit, and what stays in the other runtime and why.

    Attributes:
        runtime: the other one.
        parts: what runs on PhoneBit, in the network's order.
        rest: what stays: the reason by the name of the module or node, "" for the whole.
    """

    runtime: str
    parts: list[AcceleratedPart] = field(default_factory=list)
    rest: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)

    def __str__(self) -> str:
        """One line for each part, and for what stays."""
        lines = [f"PhoneBit: {part}" for part in self.parts]
        for name, reason in self.rest.items():
            lines.append(f"{self.runtime}: {name or 'the whole network'}: {reason}")
        return "\n".join(lines)
