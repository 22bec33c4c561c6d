"""GoogLeNet (Szegedy et al., 2015) made binary: four branches read one concatenated map."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

Widths = tuple[int, int, int, int, int, int]

STAGES: tuple[dict[str, Widths], ...] = (
    {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64)},
    {
        "4a": (192, 96, 208, 16, 48, 64),
        "4b": (160, 112, 224, 24, 64, 64),
        "4c": (128, 128, 256, 24, 64, 64),
        "4d": (112, 144, 288, 32, 64, 64),
        "4e": (256, 160, 320, 32, 128, 128),
    },
    {"5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)},
)
"""Filters of each block: 1x1; 3x3's reduction, 3x3; 5x5's reduction, 5x5; after the pool."""
CEIL = (0, 0, 1, 1)
"""Padding that makes a 3x3 pool with stride 2 halve a map of even size."""


def googlenet(form: Form = "binary") -> Graph:
    """224x224x3 -> 1000 classes, without auxiliary classifiers; 7.1 M parameters.

    A unit is batch normalization, sign, convolution (the arrangement of XNOR-Net), so that each
    branch sets its own thresholds on the shared map. Real are the 7x7 stem and the dense layer.

    Source: Going deeper with convolutions (CVPR 2015), table 1; units of XNOR-Net (ECCV 2016).
    """
    net = NetworkBuilder("googlenet", form)
    x = net.conv("conv1", net.image(224, 224), 64, 7, stride=2, padding=3, real=True)
    x = net.max_pool("pool1", x, 3, 2, CEIL)
    x = _unit(net, "conv2_reduce", x, 64, 1)
    x = _unit(net, "conv2", x, 192, 3)
    for stage, blocks in enumerate(STAGES, 2):
        x = net.max_pool(f"pool{stage}", x, 3, 2, CEIL)
        for name, widths in blocks.items():
            x = _inception(net, name, x, widths)
    x = net.relu("relu", net.batch_norm("bn", x))
    return net.done(net.dense("fc", net.global_average("mean", x), 1000, real=True, bias=True))


def _inception(net: NetworkBuilder, name: str, x: str, widths: Widths) -> str:
    one, reduce3, three, reduce5, five, pooled = widths
    pool = net.max_pool(f"{name}_pool", x, 3, 1, padding=1)
    return net.concat(
        name,
        _unit(net, f"{name}_1x1", x, one, 1),
        _unit(net, f"{name}_3x3", _unit(net, f"{name}_3x3_reduce", x, reduce3, 1), three, 3),
        _unit(net, f"{name}_5x5", _unit(net, f"{name}_5x5_reduce", x, reduce5, 1), five, 5),
        _unit(net, f"{name}_pool_1x1", pool, pooled, 1),
    )


def _unit(net: NetworkBuilder, name: str, x: str, filters: int, kernel: int) -> str:
    x = net.activate(f"{name}_sign", net.batch_norm(f"{name}_bn", x))
    return net.conv(name, x, filters, kernel, padding=kernel // 2)
