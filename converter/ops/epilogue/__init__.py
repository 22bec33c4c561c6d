"""The epilogue operations ("steps" of the format); ``base.py`` says what each has to say.

All modules of this package are imported here, and those that read and write files find a class by
its number. Passes and importers share the names below; functions without parameters are in
``functions.py``, and importers find them by their names.
"""

from __future__ import annotations

from typing import Final

from phonebit.converter.ops.epilogue.base import Epilogue as Epilogue
from phonebit.converter.ops.epilogue.base import EpilogueOp as EpilogueOp
from phonebit.converter.ops.epilogue.clamp import Clamp as Clamp
from phonebit.converter.ops.epilogue.count import Count as Count
from phonebit.converter.ops.epilogue.functions import FUNCTIONS as FUNCTIONS
from phonebit.converter.ops.epilogue.prelu import PRelu as PRelu
from phonebit.converter.ops.epilogue.scale_bias import ScaleBias as ScaleBias
from phonebit.converter.ops.epilogue.tensors import AddTensor as AddTensor
from phonebit.converter.ops.epilogue.tensors import MultiplyTensor as MultiplyTensor
from phonebit.converter.ops.epilogue.tensors import TensorOp as TensorOp
from phonebit.format.records import StepKind

EPILOGUE_OPS: Final = EpilogueOp.by_kind(StepKind)
"""The class for each number in the file."""
