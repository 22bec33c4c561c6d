"""Networks of the co-execution papers that the package does not have, made binary.

Fine-Grained's table 3 has ResNet-34 and Inception-v3. Here ResNet-34 is Bi-Real-18 with as many
blocks; Inception-v3 has binary units (batch normalization, sign, convolution) after its first
layer, and maxima for averages in the pool branches, as our GoogLeNet has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.records import TITLES as OURS
from phonebit.converter.convert import write_conversion
from phonebit.converter.ir import Graph
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.models.networks import NETWORKS, Definition, converted
from phonebit.models.networks.birealnet18 import birealnet
from phonebit.models.networks.builder import Form, NetworkBuilder

Kernel = int | tuple[int, int]
ROW, COLUMN = (1, 7), (7, 1)


def birealnet34(form: Form = "binary") -> Graph:
    """Bi-Real net 34 (Liu et al., 2018): a shortcut around each convolution of ResNet-34."""
    return birealnet(NetworkBuilder("birealnet34", form), (6, 8, 12, 6))


def inception_v3(form: Form = "binary") -> Graph:
    """299x299x3 -> 1000 classes, without auxiliary classifiers.

    Source: Rethinking the inception architecture (CVPR 2016), table 1; torchvision's widths.
    """
    net = NetworkBuilder("inception_v3", form)
    x = net.conv("conv1", net.image(299, 299), 32, 3, stride=2, real=True)
    x = _units(net, "conv2", x, (32, 3), pad=0)
    x = net.max_pool("pool1", _units(net, "conv3", x, (64, 3)), 3, 2)
    x = _units(net, "conv4", x, (80, 1), (192, 3), pad=0)
    x = net.max_pool("pool2", x, 3, 2)
    branches = ((64, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3))
    for number, pooled in enumerate((32, 64, 64)):
        x = _block(net, f"a{number}", x, branches, pooled)
    x = _reduction(net, "b", x, ((384, 3),), ((64, 1), (96, 3), (96, 3)))
    for number, width in enumerate((128, 160, 160, 192)):
        seven = (width, 1), (width, ROW), (192, COLUMN)
        twice = (width, 1), (width, COLUMN), (width, ROW), (width, COLUMN), (192, ROW)
        x = _block(net, f"c{number}", x, (((192, 1),), seven, twice), 192)
    halving = (192, 1), (192, ROW), (192, COLUMN), (192, 3)
    x = _reduction(net, "d", x, ((192, 1), (320, 3)), halving)
    for number in range(2):
        x = _last_block(net, f"e{number}", x)
    x = net.relu("relu", net.batch_norm("bn", x))
    return net.done(net.dense("fc", net.global_average("mean", x), 1000, real=True, bias=True))


def _block(
    net: NetworkBuilder,
    name: str,
    x: str,
    branches: tuple[tuple[tuple[int, Kernel], ...], ...],
    pooled: int,
) -> str:
    """Branches that keep the map's size, one of them after a pool."""
    ends = [_units(net, f"{name}_{number}", x, *units) for number, units in enumerate(branches)]
    pool = net.max_pool(f"{name}_pool", x, 3, 1, padding=1)
    return net.concat(name, *ends, _units(net, f"{name}_pooled", pool, (pooled, 1)))


def _reduction(
    net: NetworkBuilder, name: str, x: str, *branches: tuple[tuple[int, Kernel], ...]
) -> str:
    """Branches that halve the map, and a pool."""
    ends = []
    for number, (*units, (filters, _)) in enumerate(branches):
        end = _units(net, f"{name}_{number}", x, *units)
        ends.append(_units(net, f"{name}_{number}_half", end, (filters, 3), stride=2, pad=0))
    return net.concat(name, *ends, net.max_pool(f"{name}_pool", x, 3, 2))


def _last_block(net: NetworkBuilder, name: str, x: str) -> str:
    """The block whose branches end in a row and a column side by side."""
    ends = [_units(net, f"{name}_0", x, (320, 1))]
    for number, units in enumerate((((384, 1),), ((448, 1), (384, 3))), 1):
        stem = _units(net, f"{name}_{number}", x, *units)
        ends += [
            _units(net, f"{name}_{number}_{kernel}", stem, (384, sides))
            for kernel, sides in (("row", (1, 3)), ("column", (3, 1)))
        ]
    pool = net.max_pool(f"{name}_pool", x, 3, 1, padding=1)
    return net.concat(name, *ends, _units(net, f"{name}_pooled", pool, (192, 1)))


def _units(
    net: NetworkBuilder,
    name: str,
    x: str,
    *units: tuple[int, Kernel],
    stride: int = 1,
    pad: int | None = None,
) -> str:
    """Units one after the other that keep the map's size, if nothing else is said."""
    for number, (filters, kernel) in enumerate(units):
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = (height // 2, width // 2) if pad is None else (pad, pad)
        unit = f"{name}_{number}"
        x = net.activate(f"{unit}_sign", net.batch_norm(f"{unit}_bn", x))
        x = net.conv(unit, x, filters, kernel, stride=stride, padding=(*pads, *pads))
    return x


EXTRA: Final = {
    "birealnet34": Definition(birealnet34, "f32", "Liu et al. 2018"),
    "inception_v3": Definition(inception_v3, "f32", "Szegedy et al. 2016"),
}
TITLES: Final = OURS | {"birealnet34": "Bi-Real-34", "inception_v3": "Inception-v3"}
"""Names in tables."""
SEARCHED: Final = {"vgg_small": "VGG-small", **TITLES}
"""Those that ``network_search.py`` searches."""


def network_file(folder: Path, name: str, precision: str) -> Path:
    """The network's file; for "fast" its float weights have 8 bits."""
    weights: FloatWeights = "i8" if precision == "fast" else "f32"
    path = folder / f"{name}-{weights}.pbit"
    if not path.is_file():
        conversion = converted(name, "binary", weights, NETWORKS | EXTRA)
        write_conversion(conversion, path)
    return path
