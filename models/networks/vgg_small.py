"""VGG-small for images of 32x32 (Zhang et al., 2018): six convolutions, one dense layer."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

WIDTHS = (128, 256, 512)
"""Filters of two convolutions each; a 2x2 max-pool follows the second."""


def vgg_small(form: Form = "binary") -> Graph:
    """32x32x3 -> 10 classes; the first convolution and the dense layer are real.

    Source: LQ-Nets (ECCV 2018), section 4.2, the network for CIFAR-10.
    """
    net = NetworkBuilder("vgg_small", form)
    x = net.image(32, 32)
    for stage, filters in enumerate(WIDTHS, 1):
        for index in (1, 2):
            layer = f"{stage}_{index}"
            x = net.conv(f"conv{layer}", x, filters, 3, padding=1, real=layer == "1_1")
            x = net.batch_norm(f"bn{layer}", x, pool=4 if index == 2 else 1)
            x = net.activate(f"sign{layer}", x)
        x = net.max_pool(f"pool{stage}", x, 2, 2)
    return net.done(net.dense("fc", x, 10, real=True, bias=True))
