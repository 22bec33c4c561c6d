"""Four classifiers for images of 32x32x1, as BNN and as float twin.

Both forms of a network have the same layers. In the form "binary" every weight but those of the
last dense layer is -1 or +1 and every activation is a sign; in the form "float", its twin, weights
are real and the activation is ReLU. The first convolution of both reads the image itself.

    VGG-small        128 128 P 256 256 P 512 512 P           - dense 10
    AlexNet-small    96 P 192 P 256 256 192 P - 1024 1024    - dense 10; the first two are 5x5
    ResNet-18-small  32, then 4 times each 32 64 128 256     - mean - dense 10
    ViT-small        32 64, then 2 transformer blocks        - mean - dense 10; see transformer.py

Numbers are filters of 3x3 convolutions or units of dense layers, P is a 2x2 max-pool between a
convolution and its batch normalization. In ResNet-18-small every convolution has a shortcut of its
own, which carries float values past the signs; where the map halves, the shortcut is a 2x2 max-pool
whose channels are taken twice. A maximum and a copy add no bits to a number, as a mean or a real
1x1 convolution would, so sums along the shortcuts can be exact (see dyadic.py).

Source: VGG-small as in Zhang et al. 2018 (LQ-Nets); residual blocks and the gradient of the sign as
in Liu et al. 2018 (Bi-Real Net, sections 3.2 and 3.3).
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Final

from torch import Tensor, nn

from training.fashion_mnist_torch.layers import (
    CLASS_COUNT,
    EPSILON,
    SIDE,
    Form,
    ResidualConv,
    activation_layer,
    conv_layer,
    dense_layer,
)
from training.fashion_mnist_torch.transformer import ViTSmall


def _plain(
    form: Form, convolutions: list[tuple[int, int, bool]], dense: tuple[int, ...]
) -> nn.Module:
    """Convolutions (filters, kernel, pool after it), dense layers, and the real one at the end."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    before, side = 1, SIDE
    for index, (filters, kernel, pool) in enumerate(convolutions, 1):
        layers[f"conv{index}"] = conv_layer(form, before, filters, kernel)
        if pool:
            layers[f"pool{index}"] = nn.MaxPool2d(2)
            side //= 2
        layers[f"norm{index}"] = nn.BatchNorm2d(filters, EPSILON)
        layers[f"activation{index}"] = activation_layer(form)
        before = filters
    layers["flatten"] = nn.Flatten()
    before *= side * side
    for index, units in enumerate(dense, len(convolutions) + 1):
        layers[f"dense{index}"] = dense_layer(form, before, units)
        layers[f"norm{index}"] = nn.BatchNorm1d(units, EPSILON)
        layers[f"activation{index}"] = activation_layer(form)
        before = units
    layers["logits"] = nn.Linear(before, CLASS_COUNT)
    return nn.Sequential(layers)


def vgg_small(form: Form) -> nn.Module:
    """VGG-small: 4.57 M binary weights."""
    widths = (128, 128, 256, 256, 512, 512)
    return _plain(form, [(width, 3, bool(i % 2)) for i, width in enumerate(widths)], ())


def alexnet_small(form: Form) -> nn.Module:
    """AlexNet-small: 6.13 M binary weights, two thirds of them in the dense layers."""
    convolutions = [
        (96, 5, True),
        (192, 5, True),
        (256, 3, False),
        (256, 3, False),
        (192, 3, True),
    ]
    return _plain(form, convolutions, (1024, 1024))


class ResNet18Small(nn.Module):
    """Stem, sixteen convolutions with shortcuts, mean over the activations' map, dense layer."""

    def __init__(self, form: Form, widths: tuple[int, ...] = (32, 64, 128, 256)) -> None:
        super().__init__()
        self.stem = conv_layer(form, 1, widths[0])
        self.norm = nn.BatchNorm2d(widths[0], EPSILON)
        befores = [widths[0], *(width for width in widths for _ in range(4))]
        pairs = pairwise(befores)
        self.blocks = nn.Sequential(*(ResidualConv(form, a, b) for a, b in pairs))
        self.activation = activation_layer(form)
        self.logits = nn.Linear(widths[-1], CLASS_COUNT)

    def forward(self, x: Tensor) -> Tensor:
        """float32[N][1][32][32] -> logits float32[N][10]."""
        x = self.blocks(self.norm(self.stem(x)))
        logits: Tensor = self.logits(self.activation(x).mean((2, 3)))
        return logits


NETWORKS: Final[dict[str, Callable[[Form], nn.Module]]] = {
    "vgg_small": vgg_small,
    "alexnet_small": alexnet_small,
    "resnet18_small": ResNet18Small,
    "vit_small": ViTSmall,
}
"""By name: builds the untrained network, float32[N][1][32][32] -> logits float32[N][10]."""
BINARY: Final = {name: partial(network, "binary") for name, network in NETWORKS.items()}
"""By name: builds the untrained binary network; what ``packed_checkpoint.load`` wants."""
