"""Published binary networks in PyTorch, written here from the papers' formulas.

Each family is a file and keeps its authors' way of writing quantizers: custom autograd functions,
detach tricks, comparisons, ``where``. ``NETWORKS`` lists those that classify images, ``TASKS``
the others; PyTorch is imported only when one is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

Shape = tuple[int, ...]
Kind = Literal["dyadic", "random"]

CIFAR: Shape = (3, 32, 32)
IMAGENET: Shape = (3, 224, 224)
POWER_OF_TWO: Shape = (3, 128, 128)
SMALL: Shape = (3, 64, 64)
SMALL_CIFAR: Shape = (3, 16, 16)


@dataclass(frozen=True)
class Entry:
    """One network.

    Attributes:
        factory: "module:function" in this package; ``function(small)`` makes the untrained network.
        shape: Of its input, (C, H, W) or (C, L), as published.
        small_shape: Of the small network's input.
        binary_share: Share of the multiply-accumulates that must become binary, at least.
        small_binary_share: The same for the small network.
        dyadic_shape: The published network's input where numbers must be exact, whose last map
            has a power of two of pixels, or few where a wide dense layer reads it; None: as
            published.
        sized: Whether the factory takes the side of the published network's input, too.
        unit_input: Whether it reads images from 0 to 1 (in steps of 1/256) instead of centred
            ones.
    """

    factory: str
    shape: Shape
    small_shape: Shape
    binary_share: float
    small_binary_share: float
    dyadic_shape: Shape | None = None
    sized: bool = False
    unit_input: bool = False

    def input_shape(self, small: bool, kind: Kind) -> Shape:
        """(C, H, W) or (C, L) of the input."""
        if small:
            return self.small_shape
        return self.dyadic_shape or self.shape if kind == "dyadic" else self.shape

    def inputs(self, kind: Kind, count: int, seed: int, small: bool) -> Tensor:
        """Inputs (count, C, H, W) or (count, C, L), float32; exact if ``kind`` is "dyadic"."""
        from . import statistics

        shape = self.input_shape(small, kind)
        if self.unit_input:
            return statistics.unit_images(shape, count, seed)
        make = statistics.integer_images if kind == "dyadic" else statistics.images
        return make(shape, count, seed)

    def build(self, kind: Kind, seed: int, small: bool) -> nn.Module:
        """The network in eval mode with ``dyadic_`` or ``random_`` weights and statistics."""
        from . import statistics

        module, function = self.factory.split(":")
        make = getattr(import_module(f"{__name__}.{module}"), function)
        side = {"side": self.input_shape(small, kind)[-1]} if self.sized and not small else {}
        network: nn.Module = make(small, **side)
        initialise = statistics.dyadic_ if kind == "dyadic" else statistics.random_
        return initialise(network, self.inputs(kind, 4, seed, small), seed)


NETWORKS: dict[str, Entry] = {
    "hubara_vgg_small": Entry("hubara:vgg_small", CIFAR, SMALL_CIFAR, 0.994, 0.962),
    "xnornet_alexnet": Entry(
        "xnor:alexnet", (3, 227, 227), (3, 99, 99), 0.903, 0.42, (3, 99, 99), sized=True
    ),
    "birealnet18": Entry("bireal:birealnet18", IMAGENET, SMALL, 0.923, 0.57, POWER_OF_TWO),
    "reactnet_resnet18": Entry(
        "reactnet:reactnet_resnet18", IMAGENET, SMALL, 0.923, 0.57, POWER_OF_TWO
    ),
    "reactnet_mobilenet": Entry(
        "reactnet:reactnet_mobilenet", IMAGENET, SMALL, 0.997, 0.955, SMALL
    ),
    "irnet_resnet20": Entry("irnet:resnet20", CIFAR, SMALL_CIFAR, 0.988, 0.963),
    "recu_resnet18": Entry("recu:resnet18", CIFAR, CIFAR, 0.985, 0.934),
    "adabin_resnet20": Entry("adabin:resnet20", CIFAR, SMALL_CIFAR, 0.919, 0.889),
    "brevitas_cnv_w1a1": Entry("brevitas:cnv_w1a1", CIFAR, CIFAR, 0.973, 0.88, unit_input=True),
    "brevitas_cnv_w1a2": Entry("brevitas:cnv_w1a2", CIFAR, CIFAR, 0.973, 0.88, unit_input=True),
    "bitorch_resnet_e18": Entry("bitorch:resnet_e18", IMAGENET, SMALL, 0.923, 0.5, POWER_OF_TWO),
    "binary_googlenet": Entry("googlenet:googlenet", IMAGENET, SMALL, 0.924, 0.38, POWER_OF_TWO),
    "mnist_mlp": Entry("mlp:mnist_mlp", (1, 28, 28), (1, 12, 12), 0.912, 0.51),
    "binary_shufflenet": Entry("shufflenet:shufflenet", IMAGENET, SMALL, 0.92, 0.37, POWER_OF_TWO),
    "phonebit_vgg16": Entry("vgg16:vgg16", IMAGENET, SMALL, 0.99, 0.9, SMALL, sized=True),
    "real_to_binary_resnet18": Entry(
        "squeeze_excite:real_to_binary", IMAGENET, SMALL, 0.923, 0.5, POWER_OF_TWO
    ),
    "bnext_like_resnet18": Entry(
        "squeeze_excite:bnext_like", IMAGENET, SMALL, 0.923, 0.5, POWER_OF_TWO
    ),
}
"""By name. The shares are counted on the definitions: what is not binary is the stem, shortcuts of
1x1 convolutions, gates and the last layer; in AdaBin also the windows' sums of pixel sums, which
its shifted sets of values need."""

TASKS: dict[str, Entry] = {
    "binary_unet": Entry("unet:binary_unet", SMALL, (3, 16, 16), 0.94, 0.8),
    "bisrnet": Entry("bisrnet:bisrnet", (56, 64, 64), (16, 16, 16), 0.89, 0.87),
    "tc_resnet": Entry("keywords:tc_resnet", (40, 128), (10, 32), 0.92, 0.9),
    "bipointnet": Entry("pointnet:bipointnet", (3, 1024), (3, 64), 0.99, 0.8),
    "binary_vit": Entry("vit:binary_vit", (1, 32, 32), (1, 16, 16), 0.98, 0.95),
    "brevitas_live_w1a1": Entry("brevitas_live:w1a1", CIFAR, (3, 8, 8), 0.99, 0.9),
    "brevitas_live_w1a2": Entry("brevitas_live:w1a2", CIFAR, (3, 8, 8), 0.99, 0.9),
    "brevitas_live_w1a4": Entry("brevitas_live:w1a4", CIFAR, (3, 8, 8), 0.99, 0.9),
}
"""Segmentation, restoration, keywords, points, attention, and layers of the package brevitas."""


def channels_last(inputs: Tensor) -> NDArray[np.float32]:
    """Arrays as PhoneBit reads and gives them: maps (N, H, W, C), others as they are."""
    import numpy as np

    array: NDArray[np.float32] = inputs.numpy()
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if array.ndim == 4 else array
