"""AlexNet (Krizhevsky et al., 2012) in one column, 62.4 M parameters, as PhoneBit binarises it."""

from __future__ import annotations

from phonebit.converter.ir import Graph
from phonebit.models.networks.builder import Form, NetworkBuilder


def alexnet(form: Form = "binary") -> Graph:
    """227x227x3 -> 1000 classes. Image and first weights: 8 bits by signs; last layer real.

    Source: PhoneBit (DATE 2020), section VII and table II (249.5 MB as float32).
    """
    net = NetworkBuilder("alexnet", form)
    x = net.conv("conv1", net.image(227, 227), 96, 11, stride=4)
    x = net.activate("sign1", net.batch_norm("bn1", x, pool=9))
    x = net.max_pool("pool1", x, 3, 2)
    x = net.conv("conv2", x, 256, 5, padding=2)
    x = net.activate("sign2", net.batch_norm("bn2", x, pool=9))
    x = net.max_pool("pool2", x, 3, 2)
    for index, filters, pool in ((3, 384, 1), (4, 384, 1), (5, 256, 9)):
        x = net.conv(f"conv{index}", x, filters, 3, padding=1)
        x = net.activate(f"sign{index}", net.batch_norm(f"bn{index}", x, pool=pool))
    x = net.max_pool("pool5", x, 3, 2)
    for index in (6, 7):
        x = net.dense(f"fc{index}", x, 4096)
        x = net.activate(f"sign{index}", net.batch_norm(f"bn{index}", x))
    return net.done(net.dense("fc8", x, 1000, real=True, bias=True))
