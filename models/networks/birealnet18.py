"""Bi-Real net 18 (Liu et al., 2018): every binary convolution has a shortcut of its own."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

WIDTHS = (64, 128, 256, 512)


def birealnet18(form: Form = "binary") -> Graph:
    """224x224x3 -> 1000 classes; real are the 7x7 stem, the 1x1 shortcuts and the dense layer.

    The float twin has the same blocks with ReLU for the sign: ResNet-18 with a shortcut around
    each convolution. A filter's scale, its weights' mean magnitude in training, is part of the
    batch normalization after it.

    Source: Bi-Real Net (ECCV 2018), figure 2 and section 4; larq-zoo's BiRealNet.
    """
    return birealnet(NetworkBuilder("birealnet18", form), (4, 4, 4, 4))


def birealnet(net: NetworkBuilder, stages: tuple[int, ...]) -> Graph:
    """The same with other numbers of blocks: sign, 3x3 convolution, normalization, + shortcut."""
    x = net.conv("conv1", net.image(224, 224), WIDTHS[0], 7, stride=2, padding=3, real=True)
    x = net.max_pool("pool1", net.batch_norm("bn1", x, pool=9), 3, 2, padding=1)
    for stage, (width, blocks) in enumerate(zip(WIDTHS, stages, strict=True), 1):
        for block in range(1, blocks + 1):
            x = _block(net, f"{stage}_{block}", x, width)
    return net.done(net.dense("fc", net.global_average("mean", x), 1000, real=True, bias=True))


def _block(net: NetworkBuilder, layer: str, x: str, width: int) -> str:
    stride = 1 if net.shape(x)[2] == width else 2
    y = net.activate(f"sign{layer}", x)
    y = net.conv(f"conv{layer}", y, width, 3, stride=stride, padding=1)
    y = net.batch_norm(f"bn{layer}", y)
    if stride == 2:
        x = net.average_pool(f"shortcut{layer}_pool", x, 2, 2)
        x = net.conv(f"shortcut{layer}_conv", x, width, 1, real=True)
        x = net.batch_norm(f"shortcut{layer}_bn", x)
    return net.add(f"add{layer}", y, x)
