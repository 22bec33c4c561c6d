"""QuickNet (Bannink et al., 2021): residual binary blocks, cheap real transitions between them."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

WIDTHS = (64, 128, 256, 512)
BLOCKS = (4, 4, 4, 4)
"""By section: sign, binary 3x3 convolution, ReLU, batch normalization, + shortcut."""
LARGE_BLOCKS = (6, 8, 12, 6)
SAME = (0, 0, 1, 1)
"""Padding of a 3x3 window with stride 2 on a map of even size, as Keras distributes it."""


def quicknet(form: Form = "binary", size: int = 224) -> Graph:
    """``size`` squared x 3 -> 1000 classes; real are stem, transitions and dense layer.

    Binary convolutions pad with +1. In the float twin a block's input goes through ReLU instead of
    the sign, and is padded with 0.

    Source: Larq Compute Engine (MLSys 2021), section 5; larq-zoo's QuickNet.
    """
    return _network(NetworkBuilder("quicknet", form), BLOCKS, size)


def quicknet_large(form: Form = "binary", size: int = 224) -> Graph:
    """QuickNet with more blocks."""
    return _network(NetworkBuilder("quicknet_large", form), LARGE_BLOCKS, size)


def _network(net: NetworkBuilder, blocks: tuple[int, ...], size: int) -> Graph:
    x = _stem(net, net.image(size, size))
    for section, (width, count) in enumerate(zip(WIDTHS, blocks, strict=True), 1):
        if section > 1:
            x = _transition(net, f"transition{section}", x, width)
        for block in range(1, count + 1):
            x = _block(net, f"{section}_{block}", x)
    x = net.global_average("mean", net.relu("relu", x))
    return net.done(net.dense("fc", x, 1000, real=True, bias=True))


def _stem(net: NetworkBuilder, x: str) -> str:
    x = net.conv("stem_conv", x, WIDTHS[0] // 4, 3, stride=2, padding=SAME, real=True)
    x = net.relu("stem_relu", net.batch_norm("stem_bn1", x))
    channels = net.shape(x)[2]
    x = net.conv(
        "stem_depthwise", x, channels, 3, stride=2, padding=SAME, groups=channels, real=True
    )
    x = net.conv("stem_pointwise", net.batch_norm("stem_bn2", x), WIDTHS[0], 1, real=True)
    return net.batch_norm("stem_bn3", x)


def _transition(net: NetworkBuilder, layer: str, x: str, width: int) -> str:
    x = net.max_pool(f"{layer}_pool", net.relu(f"{layer}_relu", x), 2, 1)
    x = net.conv(f"{layer}_conv", net.blur_pool(f"{layer}_blur", x, 2), width, 1, real=True)
    return net.batch_norm(f"{layer}_bn", x)


def _block(net: NetworkBuilder, layer: str, x: str) -> str:
    y = net.activate(f"sign{layer}", x)
    y = net.conv(f"conv{layer}", y, net.shape(x)[2], 3, padding=1, pad_value=1.0)
    return net.add(f"add{layer}", net.batch_norm(f"bn{layer}", net.relu(f"relu{layer}", y)), x)
