"""VGG16 (Simonyan and Zisserman, 2015), as PhoneBit binarises it."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16(form: Form = "binary") -> Graph:
    """224x224x3 -> 1000 classes; thirteen 3x3 convolutions, three dense layers, the last real.

    Source: PhoneBit (DATE 2020), section VII and table II (553.4 MB as float32).
    """
    net = NetworkBuilder("vgg16", form)
    x = net.image(224, 224)
    for stage, (filters, count) in enumerate(STAGES, 1):
        for index in range(1, count + 1):
            layer = f"{stage}_{index}"
            x = net.conv(f"conv{layer}", x, filters, 3, padding=1)
            x = net.batch_norm(f"bn{layer}", x, pool=4 if index == count else 1)
            x = net.activate(f"sign{layer}", x)
        x = net.max_pool(f"pool{stage}", x, 2, 2)
    for name in ("fc6", "fc7"):
        x = net.dense(name, x, 4096)
        x = net.activate(f"{name}_sign", net.batch_norm(f"{name}_bn", x))
    return net.done(net.dense("fc8", x, 1000, real=True, bias=True))
