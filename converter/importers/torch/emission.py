"""The nodes that the importer has written so far, and how they are called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.cost import MAX_OPERATIONS, operations
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.program import Program
from phonebit.converter.ir import FloatArray, Node, Operator, Shape, TensorType
from phonebit.converter.ops import Quantize, Sign
from phonebit.format.records import DataType

MAX_ELEMENTS: Final = 1 << 31
MAIN_OPS: Final = frozenset(
    {
        "conv1d",
        "conv2d",
        "convolution",
        "linear",
        "addmm",
        "mm",
        "matmul",
        "batch_norm",
        "_native_batch_norm_legit_no_training",
    }
)
"""What a module is named for, if it holds one of them."""


class Emission:
    """Collects nodes, gives them names and remembers which of PyTorch's tensors they are."""

    def __init__(self, program: Program) -> None:
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.tensors: dict[str, tuple[str, View]] = {}
        self._names = call_names(program)
        self._by_value: dict[str, Node] = {}
        self._repeats: Counter[str] = Counter()
        self._operations = 0

    def name(self, call: Call) -> str:
        """What the node of a call is called."""
        return self._names.get(call, call.name)

    def inner_name(self, call: Call, kind: str) -> str:
        """What the node of a call is called by its purpose, unless it names its module."""
        name = self.name(call)
        path, slash, _ = name.rpartition("/")
        return f"{path}/{kind}" if slash else kind if not call.scope[1] else name

    def emit(self, op: Operator, inputs: Sequence[str], shape: Shape, name: str) -> str:
        """Appends a node.

        Args:
            op: What it computes.
            inputs: Names of its operands.
            shape: (height, width, channels) of its result.
            name: What it should be called; a number is appended where that is taken.

        Returns:
            The name of the node and of its value.

        Raises:
            UnsupportedError: The result would be too large, or the network too much work.
        """
        if math.prod(shape) > MAX_ELEMENTS or min(shape) < 1:
            raise UnsupportedError(f"its result would have shape {shape} (height, width, channels)")
        operand = self.types[inputs[0]].shape if inputs else shape
        self._operations += operations(op, shape, operand)
        if self._operations > MAX_OPERATIONS:
            maximum = f"{MAX_OPERATIONS:.0e} operations per image"
            raise UnsupportedError(f"brings the network to more than {maximum}")
        unique = name
        while unique in self._by_value:
            self._repeats[name] += 1
            unique = f"{name}_{self._repeats[name]}"
        source = name.split("/", 1)[0] or name
        node = Node(unique, op, list(inputs), unique, sources=[source])
        self.nodes.append(node)
        self._by_value[unique] = node
        self.types[unique] = TensorType(shape, DataType.F32)
        return unique

    def renamed(self, value: str, name: str) -> str:
        """Calls a value by another name, with a number appended where that is taken.

        Returns:
            What it is called.
        """
        unique, number = name, 1
        while unique != value and unique in self._by_value:
            unique, number = f"{name}_{number}", number + 1
        node = self._by_value.pop(value)
        node.value, self._by_value[unique] = unique, node
        self.types[unique] = self.types.pop(value)
        for reader in self.nodes:
            reader.inputs = [unique if read == value else read for read in reader.inputs]
        if value in self.tensors:
            call, view = self.tensors.pop(value)
            self.tensors[unique] = call, view.with_value(unique, quantized=view.quantized)
        return unique

    def quantizer(self, value: str) -> Node | None:
        """The quantizer that a value comes from, if it does."""
        node = self._by_value.get(value)
        return node if node is not None and isinstance(node.op, Quantize | Sign) else None

    def record(self, call: Call, view: View) -> None:
        """Remembers that a view holds what PyTorch computes in a call."""
        if view.value not in self.tensors and view.indices.shape == call.shape:
            self.tensors[view.value] = (call.name, view)


def call_names(program: Program) -> dict[Call, str]:
    """A name for every call: its module's path, for the call that the module is named for.

    That is its only convolution, linear layer or normalisation, else the last call in it if no
    other module is called inside. All others are called "<path>/<operator>". Further calls of a
    module that is used several times are called "<path>:1" and so on.
    """
    paths: dict[str, str] = {}
    repeats: Counter[str] = Counter()
    members: dict[str, list[Call]] = {}
    for call in program.calls:
        key, path = call.scope
        if call.constant or call.op in ("input", "getitem"):
            continue
        if key not in paths:
            paths[key] = f"{path}:{repeats[path]}" if repeats[path] else path
            repeats[path] += 1
        members.setdefault(key, []).append(call)
    paths_inside = {call.scope[1] for calls in members.values() for call in calls}
    modules = {above for path in paths_inside for above in _modules_above(path)}
    named: dict[Call, str] = {}
    taken: Counter[str] = Counter(call.name for call in program.inputs)
    for key, calls in members.items():
        main = _main_call(calls, calls[0].scope[1], modules)
        for call in calls:
            name = paths[key] if call is main else f"{paths[key]}/{call.op.strip('_')}".lstrip("/")
            taken[name] += 1
            named[call] = name if taken[name] == 1 else f"{name}_{taken[name] - 1}"
    return named


def _main_call(calls: list[Call], path: str, modules: set[str]) -> Call | None:
    if not path:
        return None
    main = [call for call in calls if call.op in MAIN_OPS]
    if main:
        return main[0] if len(main) == 1 else None
    return None if path in modules else calls[-1]


def _modules_above(path: str) -> Iterator[str]:
    """Those that hold a module: of "a.b.c" they are "a.b" and "a"."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def float_array(tensor: NDArray[Any]) -> FloatArray:
    """A constant as a float32 array of its own."""
    return np.array(tensor, np.float32)
