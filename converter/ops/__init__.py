"""The operators, one class in a file of its own; ``base.py`` says what each has to say.

An operator needs nothing but its file: all modules of this package are imported here, and those
that read and write files find it by its number. Passes and importers share the names below.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from phonebit.converter.ops.average_pool2d import AveragePool2D as AveragePool2D
from phonebit.converter.ops.base import EngineOperator
from phonebit.converter.ops.batch_norm import BatchNorm as BatchNorm
from phonebit.converter.ops.binary_conv2d import BinaryConv2D as BinaryConv2D
from phonebit.converter.ops.binary_depthwise_conv2d import (
    BinaryDepthwiseConv2D as BinaryDepthwiseConv2D,
)
from phonebit.converter.ops.bit_planes import BitPlanes as BitPlanes
from phonebit.converter.ops.concat import Concat as Concat
from phonebit.converter.ops.conv2d import Conv2D as Conv2D
from phonebit.converter.ops.dequantize import Dequantize as Dequantize
from phonebit.converter.ops.divide import Divide as Divide
from phonebit.converter.ops.elementwise import Elementwise as Elementwise
from phonebit.converter.ops.input import Input as Input
from phonebit.converter.ops.matmul import MatMul as MatMul
from phonebit.converter.ops.max_pool2d import MaxPool2D as MaxPool2D
from phonebit.converter.ops.pad import Pad as Pad
from phonebit.converter.ops.plane_sum import PlaneSum as PlaneSum
from phonebit.converter.ops.quantize import Quantize as Quantize
from phonebit.converter.ops.reshape import Reshape as Reshape
from phonebit.converter.ops.select_channels import SelectChannels as SelectChannels
from phonebit.converter.ops.sign import Sign as Sign
from phonebit.converter.ops.softmax import Softmax as Softmax
from phonebit.format.records import OpKind

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")

OPERATORS: Final = EngineOperator.by_kind(OpKind)
"""The class for each number in the file."""
