"""An ONNX model as parts are cut out of it: who reads which value, and shapes of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.onnx.files import check_model
from phonebit.converter.importers.onnx.tensors import Tensors
from phonebit.converter.importers.torch.translation import INPUT_TYPES

Shape = tuple[int, ...]
BATCHES: Final = (1, 2)
"""Of a model with an open one: what follows it is a batch."""


class ModelView:
    """A checked model.

    Args:
        model: A ``ModelProto``; it is not changed.
        folder: Where tensors outside of it may lie.

    Attributes:
        model: it.
        nodes: numbers of its nodes that compute, those of constants apart.
        constants: numbers of the nodes of constants, by what they define.
    """

    def __init__(self, model: Any, folder: Path | None) -> None:
        self.model, self.folder = model, folder
        graph = model.graph
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._inputs = [value for value in graph.input if value.name not in self._stored]
        self.constants = {
            node.output[0]: index for index, node in enumerate(graph.node) if _is_constant(node)
        }
        fixed = set(self.constants.values())
        self.nodes = [index for index in range(len(graph.node)) if index not in fixed]
        self._readers: dict[str, set[int]] = {}
        for index in self.nodes:
            for name in _names_read(graph.node[index]):
                self._readers.setdefault(name, set()).add(index)
        self._outputs = {value.name: value for value in graph.output}

    @cached_property
    def _runs(self) -> list[tuple[int, dict[str, tuple[Any, Shape]]]]:
        """Batches, and what is known of all values with them."""
        batches = (self._fixed_batch(),) if self._fixed_batch() else BATCHES
        return [(batch, self._values(batch)) for batch in batches]

    def gives_floats(self, name: str) -> bool:
        """Whether a value is of type float32, or nothing is known of it."""
        from onnx import TensorProto

        if name in self._outputs:
            kind = self._outputs[name].type.tensor_type.elem_type
            if kind != TensorProto.UNDEFINED:
                return bool(kind == TensorProto.FLOAT)
        dtype, _ = self._runs[0][1].get(name, (np.float32, ()))
        return bool(dtype == np.float32)

    def refusal(self, name: str) -> str:
        """Why a part cannot take a value; "" if it can."""
        from onnx import helper

        given = {value.name: value.type.tensor_type for value in self._inputs}
        if name in given:
            dtype = helper.tensor_dtype_to_np_dtype(given[name].elem_type)
        else:
            form = self._form(name)
            if form is None:
                return f"reads {name!r}, which has no fixed shape after a batch"
            dtype = form[0]
        return "" if str(dtype) in INPUT_TYPES else f"reads {name!r}, which is of type {dtype}"

    def _form(self, name: str) -> tuple[Any, Shape] | None:
        """NumPy type and shape without the batch, if all axes but this first one are fixed."""
        found = {
            (known[name][0], known[name][1][1:])
            if name in known and known[name][1][:1] == (batch,)
            else None
            for batch, known in self._runs
        }
        return found.pop() if len(found) == 1 else None

    def title(self, index: int) -> str:
        """A node as reports name it."""
        node = self.model.graph.node[index]
        return node.name or next((name for name in node.output if name), f"node {index}")

    def inputs_of(self, nodes: Sequence[int]) -> list[str]:
        """Values that nodes read and neither compute nor the model stores, in order."""
        made = {name for index in nodes for name in self.model.graph.node[index].output}
        read = (name for index in nodes for name in _names_read(self.model.graph.node[index]))
        known = made | set(self.constants) | set(self._stored)
        return [name for name in dict.fromkeys(read) if name and name not in known]

    def outputs_of(self, nodes: Sequence[int]) -> list[str]:
        """What others read of what nodes compute, in order."""
        own = set(nodes)
        made = (name for index in nodes for name in self.model.graph.node[index].output if name)
        return [
            name for name in made if name in self._outputs or self._readers.get(name, set()) - own
        ]

    def part(self, nodes: Sequence[int], are_numbered: bool) -> Any:
        """Some of the nodes as a model of their own.

        Args:
            nodes: Their numbers, in order.
            are_numbered: Whether they are named by these numbers instead of their names.
        """
        from onnx import helper

        copy = self._empty_copy()
        graph = copy.graph
        read = {name for index in nodes for name in _names_read(self.model.graph.node[index])}
        graph.initializer.extend(self._stored[name] for name in self._stored if name in read)
        numbers = sorted([*nodes, *{self.constants[name] for name in read & set(self.constants)}])
        for index in numbers:
            graph.node.append(self.model.graph.node[index])
            if are_numbered:
                graph.node[-1].name = str(index)
                del graph.node[-1].metadata_props[:]
        given = {value.name: value for value in self._inputs}
        for name in self.inputs_of(nodes):
            if name in given:
                graph.input.append(given[name])
                continue
            form = self._form(name)
            assert form is not None, name  # a part that reads it has been refused
            dtype, shape = form
            kind = helper.np_dtype_to_tensor_dtype(dtype)
            whole = (self._fixed_batch() or "N", *shape)
            graph.input.append(helper.make_tensor_value_info(name, kind, whole))
        graph.output.extend(map(helper.make_empty_tensor_value_info, self.outputs_of(nodes)))
        return check_model(copy)

    def with_nodes(
        self, nodes: Iterable[Any], outputs: Iterable[Any], values: Iterable[Any]
    ) -> Any:
        """A copy of the model with other nodes, that holds the tensors that they read.

        Args:
            nodes: All of them, in order; constants that nobody reads are left out.
            outputs: The ``ValueInfoProto`` of its outputs.
            values: Those of values between the nodes.
        """
        from onnx import helper, numpy_helper

        copy = self._empty_copy()
        graph = copy.graph
        every = list(nodes)
        graph.output.extend(outputs)
        tensors = Tensors(self.folder)
        read = {name for node in every for name in _names_read(node)}
        read |= {value.name for value in graph.output}
        graph.node.extend(n for n in every if not read.isdisjoint(n.output) or not _is_constant(n))
        for name, tensor in self._stored.items():
            if name in read:
                graph.initializer.append(numpy_helper.from_array(tensors.array(tensor, name), name))
        graph.input.extend(self._inputs)
        graph.value_info.extend(values)
        if "com.microsoft" not in {entry.domain for entry in copy.opset_import}:
            copy.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return copy

    def _empty_copy(self) -> Any:
        """The model without what its graph holds."""
        from onnx import ModelProto

        copy = ModelProto()
        copy.CopyFrom(self.model)
        for field in ("node", "initializer", "input", "output", "value_info"):
            copy.graph.ClearField(field)
        return copy

    def _fixed_batch(self) -> int:
        """The batch that the inputs have; 0: an open one."""
        dims = self._inputs[0].type.tensor_type.shape.dim if self._inputs else ()
        return int(dims[0].dim_value) if dims else 0

    def _values(self, batch: int) -> dict[str, tuple[Any, Shape]]:
        """NumPy types and shapes of what the nodes compute, from a run on zeros.

        None are known of a model that ONNX Runtime does not run, or whose inputs are open.
        """
        import onnxruntime
        from onnx import helper

        names = [
            name for index in self.nodes for name in self.model.graph.node[index].output if name
        ]
        whole = self.with_nodes(
            self.model.graph.node, map(helper.make_empty_tensor_value_info, names), ()
        )
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        feeds = {}
        for value in self._inputs:
            kind = value.type.tensor_type
            dims = [int(dim.dim_value) for dim in kind.shape.dim]
            if not dims or min(dims[1:], default=1) < 1:
                return {}
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feeds[value.name] = np.zeros((dims[0] or batch, *dims[1:]), dtype)
        try:
            run = onnxruntime.InferenceSession(
                whole.SerializeToString(), options, providers=["CPUExecutionProvider"]
            ).run
            results = run(names, feeds)
        except Exception:  # its exceptions have no base of their own
            return {}
        arrays = {**feeds, **dict(zip(names, results, strict=True))}
        return {
            name: (array.dtype, array.shape)
            for name, array in arrays.items()
            if isinstance(array, np.ndarray)
        }


def _is_constant(node: Any) -> bool:
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx")


def _names_read(node: Any) -> Iterator[str]:
    """Inputs of a node, and what the graphs inside it read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            yield from (value.name for value in graph.output)
            for inner in graph.node:
                yield from _names_read(inner)
