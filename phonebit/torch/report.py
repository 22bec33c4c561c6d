"""What ``phonebit.accelerate`` made of a module."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class AcceleratedPart:
    """A part that runs on PhoneBit.

    Attributes:
        name: of the module, "" for the whole; "features.0 to features.4" for several in a row.
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

    def __str__(self) -> str:
        """One line."""
        name = self.name or "the whole module"
        share = f"{100 * self.binary_mac_share:.1f} % of its MACs"
        text = f"{name}: {self.layers} layers, {self.binary_layers} binary ({share})"
        return "; ".join([text, *self.notes])


@dataclass
class AccelerationReport:
    """What runs on PhoneBit, and what stays in PyTorch and why.

    Attributes:
        parts: what runs on PhoneBit, in the order of the module tree.
        rest: what stays in PyTorch: the reason by the name of the module, "" for the whole.
    """

    parts: list[AcceleratedPart] = field(default_factory=list)
    rest: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)

    def __str__(self) -> str:
        """One line for each part, and for what stays in PyTorch."""
        lines = [f"PhoneBit: {part}" for part in self.parts]
        for name, reason in self.rest.items():
            lines.append(f"PyTorch: {name or 'the whole module'}: {reason}")
        return "\n".join(lines)
