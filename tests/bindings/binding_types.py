"""What both bindings of the engine report, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phonebit import Preprocessing

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Levels = NDArray[np.uint8]


class BindingError(Exception):
    """An error of either binding.

    Args:
        kind: "format", "input", "device" or "cancelled".
        text: the engine's words.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


@dataclass(frozen=True)
class Tensor:
    """An input or output."""

    name: str
    dtype: str
    shape: tuple[int, int, int]


@dataclass(frozen=True)
class Layer:
    """One op of the file."""

    name: str
    kind: str
    kernel: str
    macs: int
    is_binary: bool
    weight_bytes: int


@dataclass(frozen=True)
class Facts:
    """Everything that is fixed at load."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    layers: tuple[Layer, ...]
    labels: tuple[str, ...]
    memory: Mapping[str, int]
    metadata: Mapping[str, Any]
    device: str
    threads: int
    plan_key: str


class BoundNetwork(Protocol):
    """A loaded network in one of the bindings."""

    @property
    def facts(self) -> Facts:
        """What it is."""

    def forward(self, inputs: Arrays) -> dict[str, Array]:
        """Outputs (N, height, width, channels) by name; bits as int8 of -1 and +1."""

    def profile(self, inputs: Arrays) -> list[float]:
        """Milliseconds of each layer."""

    @property
    def rule(self) -> Preprocessing | None:
        """What the file says of images for the first input."""

    def prepare_image(self, levels: Levels, rule: Preprocessing | None) -> Array:
        """A gray (height, width), RGB or RGBA image as an image of the first input.

        Without a rule, by the file's own.
        """

    def cancel(self) -> None:
        """Ends what runs."""
