"""YOLOv2-Tiny (Redmon and Farhadi, 2017) for VOC, as PhoneBit binarises it."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

FILTERS = (16, 32, 64, 128, 256, 512, 1024, 1024)
POOLED = 6
"""So many layers have a 2x2 max-pool after them; the last of these has stride 1."""


def yolov2_tiny(form: Form = "binary", size: int = 416) -> Graph:
    """416x416x3 -> 13x13x125: 5 boxes of 4 + 1 + 20 numbers. The last layer is real.

    Source: PhoneBit (DATE 2020), section VII, figure 5; the layers of darknet's
    yolov2-tiny-voc.cfg, whose sixth pool keeps the size by one more row and column.
    """
    net = NetworkBuilder("yolov2_tiny", form, "leaky_relu")
    x = net.image(size, size)
    for index, filters in enumerate(FILTERS, 1):
        pooled = index <= POOLED
        x = net.conv(f"conv{index}", x, filters, 3, padding=1)
        x = net.batch_norm(f"bn{index}", x, pool=4 if pooled else 1)
        x = net.activate(f"sign{index}", x)
        if pooled:
            last = index == POOLED
            x = net.max_pool(f"pool{index}", x, 2, 1 if last else 2, (0, 0, 1, 1) if last else 0)
    return net.done(net.conv("conv9", x, 125, 1, real=True, bias=True))
