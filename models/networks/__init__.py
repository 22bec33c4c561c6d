"""Networks with seeded weights, as source graphs and files: no framework, no download.

``NETWORKS`` maps a name to a definition: ``NETWORKS["alexnet"]("binary")`` is the source graph of
the network, ``("float")`` that of its float twin, the same layers with float weights and ReLU for
the sign; ``.facts()`` are its shapes and costs. ``build`` writes a ``.pbit`` file::

    from phonebit.models.networks import build

    report = build("yolov2_tiny", "yolov2_tiny.pbit")
    build("yolov2_tiny", "twin.pbit", form="float")

The weights are random numbers from a fixed seed: good for measuring speed, size and equality of
engines, of no use for classifying images.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal

from phonebit.converter.convert import Conversion, convert_graph, write_conversion
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.converter.report import ConversionReport
from phonebit.errors import ConversionError
from phonebit.format.writer import PBIT_FILE
from phonebit.models.networks.alexnet import alexnet
from phonebit.models.networks.birealnet18 import birealnet18
from phonebit.models.networks.definition import Definition, NetworkFacts
from phonebit.models.networks.googlenet import googlenet
from phonebit.models.networks.quicknet import quicknet, quicknet_large
from phonebit.models.networks.vgg16 import vgg16
from phonebit.models.networks.vgg_small import vgg_small
from phonebit.models.networks.yolov2_tiny import yolov2_tiny
from phonebit.output_files import check_output

__all__ = ["INPUT_RANGE", "NETWORKS", "Definition", "NetworkFacts", "build", "converted"]

BuiltForm = Literal["binary", "float"]

NETWORKS: Final[dict[str, Definition]] = {
    "alexnet": Definition(alexnet, "u8", "Krizhevsky et al. 2012, in PhoneBit 2020"),
    "yolov2_tiny": Definition(yolov2_tiny, "u8", "Redmon and Farhadi 2017, in PhoneBit 2020"),
    "vgg16": Definition(vgg16, "u8", "Simonyan and Zisserman 2015, in PhoneBit 2020"),
    "birealnet18": Definition(birealnet18, "f32", "Liu et al. 2018"),
    "quicknet": Definition(quicknet, "f32", "Bannink et al. 2021"),
    "quicknet_large": Definition(quicknet_large, "f32", "Bannink et al. 2021"),
    "googlenet": Definition(googlenet, "f32", "Szegedy et al. 2015, units of XNOR-Net 2016"),
    "vgg_small": Definition(vgg_small, "f32", "Zhang et al. 2018"),
}
INPUT_RANGE: Final = (-1.0, 1.0)
"""What levels 0 and 255 of an image are to every one of them."""


def build(
    name: str,
    path: str | os.PathLike[str],
    form: BuiltForm = "binary",
    float_weights: FloatWeights = "f32",
    *,
    replace_any: bool = False,
) -> ConversionReport:
    """Writes one of the networks as a ``.pbit`` file.

    Args:
        name: one of ``NETWORKS``.
        path: the file; an existing ``.pbit`` file is replaced only when the new one is complete.
        form: "binary", or "float": the twin with float weights and activations.
        float_weights: how float weights are stored: "f32", or rounded to "f16" or "i8".
        replace_any: also replace a file that is no ``.pbit`` file.

    Returns:
        The conversion's report.

    Raises:
        ConversionError: There is no such network or form, or the file cannot be written.
        InputError: The path is a folder, or a file of another kind.
    """
    check_output(path, PBIT_FILE, replace_any=replace_any)
    conversion = converted(name, form, float_weights)
    write_conversion(conversion, path, replace_any=replace_any)
    return conversion.report


def converted(
    name: str,
    form: BuiltForm = "binary",
    float_weights: FloatWeights = "f32",
    networks: Mapping[str, Definition] = NETWORKS,
) -> Conversion:
    """One of the networks as ``build`` writes it, in memory; see there.

    The binary networks whose first weights are signs read levels of an image, the others and all
    float twins float values of -1..1.
    """
    if name not in networks:
        known = ", ".join(networks)
        raise ConversionError("no such network", expected=f"one of {known}", got=repr(name))
    if form not in ("binary", "float"):
        raise ConversionError("no such form", expected="'binary' or 'float'", got=repr(form))
    definition = networks[name]
    return convert_graph(
        definition(form),
        input_dtype=definition.input_dtype if form == "binary" else "f32",
        input_range=INPUT_RANGE,
        check=False,
        float_weights=float_weights,
        origin={"definition": f"phonebit.models.networks, {form}"},
    )
