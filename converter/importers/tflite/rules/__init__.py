"""What each operator of TensorFlow Lite is in ONNX's terms: a function that makes its calls."""

from __future__ import annotations

from typing import Final

from phonebit.converter.importers.onnx.node_reader import Rule
from phonebit.converter.importers.tflite.rules.computing import COMPUTING
from phonebit.converter.importers.tflite.rules.larq import LARQ
from phonebit.converter.importers.tflite.rules.moving import MOVING
from phonebit.converter.importers.tflite.rules.quantized import dequantize, quantize

RULES: Final[dict[str, Rule]] = {
    **COMPUTING,
    **MOVING,
    **LARQ,
    "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize,
}
