"""Walks the calls of a Keras model in order and translates each into nodes of a source graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from phonebit.converter.importers.errors import listed
from phonebit.converter.importers.keras.call_arguments import TensorRef, map_refs
from phonebit.converter.importers.keras.checks import RECORDED, Knowledge, config_problems
from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec, call_name
from phonebit.converter.importers.keras.custom import translate_custom
from phonebit.converter.importers.keras.files import KerasModel
from phonebit.converter.importers.keras.functions import call_function
from phonebit.converter.importers.keras.graph import (
    MAX_NODES,
    LayerContext,
    NodeList,
    Tensor,
    UnsupportedError,
    tensors,
)
from phonebit.converter.importers.keras.layers import LAYERS
from phonebit.converter.importers.keras.weights import NoWeights, describe
from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, TensorType
from phonebit.converter.ops import Elementwise, Input
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.errors import ConversionError, PhoneBitError, UnsupportedLayerError
from phonebit.format.records import DataType

LayerPath = tuple[str, ...]
Outputs = list[Tensor | None]
"""Output tensors of a call; None where a problem in front of it leaves them unknown."""
Problems = dict[LayerPath, list[str]]
Call = tuple[str, int]
"""A layer's name and the number of its call."""

INPUT_TYPES: Final = {
    "uint8": DataType.U8,
    **dict.fromkeys(("float32", "float16", "int32", "int64"), DataType.F32),
}
"""Whole numbers of more bytes, as embeddings read them, are given as floats."""
MALFORMED: Final = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What Python raises where a configuration holds something else than Keras writes there."""


def translate(
    model: KerasModel, knowledge: Knowledge, input_shape: Sequence[int] | None = None
) -> Graph:
    """The source graph of a model.

    Args:
        model: Its topology and weights.
        knowledge: What its quantizers, Lambda layers and custom layers compute.
        input_shape: (height, width, channels) for a model that leaves its input's size open.

    Raises:
        UnsupportedLayerError: All unsupported layers, quantizers and activations, listed.
        ConversionError: The model is inconsistent with itself or with ``input_shape``.
    """
    problems: Problems = {}
    for path, problem in config_problems(model.spec, knowledge):
        problems.setdefault(path, []).append(problem)
    if problems:  # look for more, in a dry run
        model = KerasModel(model.spec, NoWeights(), model.keras_major)
    run = _Translation(model, knowledge, input_shape, problems)
    outputs: Outputs = []
    try:
        outputs = run.model(model.spec, (), "", None)
    except ConversionError:
        if not problems:
            raise
    if problems:
        raise UnsupportedLayerError(
            listed((describe(here), text) for here, found in problems.items() for text in found),
            hint="replace what is listed by supported layers and convert again",
        )
    return run.graph([output for output in outputs if output is not None])


class _Translation:
    """One run: collects the nodes, and the problems of layers that depend on their input."""

    def __init__(
        self,
        model: KerasModel,
        knowledge: Knowledge,
        input_shape: Sequence[int] | None,
        problems: Problems,
    ) -> None:
        self._model = model
        self._knowledge = knowledge
        self._input_shape = None if input_shape is None else tuple(input_shape)
        self._problems = problems
        names = set(islice(_call_names(model.spec, ""), MAX_NODES + 1))
        if len(names) > MAX_NODES:
            raise ConversionError(f"the model makes more than {MAX_NODES} layer calls")
        self._nodes = NodeList(names)
        self._types: dict[str, TensorType] = {}
        self._expected_binary: list[str] = []
        self._arrays: dict[str, tuple[int, ...]] = {}

    def graph(self, outputs: list[Tensor]) -> Graph:
        """The finished graph, with all types inferred and checked."""
        spec = self._model.spec
        graph = Graph(
            spec.name,
            self._nodes.nodes,
            self._types,
            list(dict.fromkeys(ref.layer for ref in spec.inputs)),
            self._outputs(outputs),
            expected_binary=self._expected_binary,
            arrays=self._arrays,
        )
        graph.types = infer(graph)
        return graph

    def _outputs(self, outputs: list[Tensor]) -> list[str]:
        """Their values; of one that is given more than once copies, by the keys of a dict."""
        names: list[str] = []
        keys = self._model.spec.output_keys
        keys = keys if len(keys) == len(outputs) else [""] * len(outputs)
        count = Counter(output.value for output in outputs)
        for output, key in zip(outputs, keys, strict=True):
            value = output.value
            if value in names or (key and count[value] > 1):
                value = self._nodes.inner_name(key or f"{value}/output")
                copied = Node(value, Elementwise(Epilogue([])), [output.value], value)
                self._nodes.nodes.append(copied)
                self._nodes.used.add(value)
            self._record(replace(output, value=value))
            names.append(value)
        return names

    def _record(self, tensor: Tensor) -> None:
        """An input's or output's own axes, if they are no map's."""
        if len(tensor.shape) not in (1, 3):
            self._arrays[tensor.value] = tensor.shape

    def model(
        self,
        model: ModelSpec,
        path: LayerPath,
        prefix: str,
        inputs: Outputs | None,
        names: Mapping[Call, str] = MappingProxyType({}),
    ) -> Outputs:
        """Translates every call of a model.

        Args:
            model: The whole model, or one inside it.
            path: Of the model inside the whole one.
            prefix: Of the names of its values.
            inputs: Given for a model inside another.
            names: Other names than usual for the values of some calls.
        """
        values: dict[tuple[str, int], Outputs] = {}
        if inputs is not None:
            if len(inputs) != len(model.inputs):
                raise ConversionError(
                    f"{describe(path)} is called with {len(inputs)} tensors, but has "
                    f"{len(model.inputs)} inputs"
                )
            for ref, tensor in zip(model.inputs, inputs, strict=True):
                values[ref.layer, ref.call] = [tensor]
        for layer, number in model.ordered_calls():
            if (layer.name, number) in values:
                continue
            name = names.get((layer.name, number), prefix + call_name(layer, number))
            here = (*path, layer.name)
            try:
                outputs = self._call(layer, number, here, name, values)
            except UnsupportedError as error:
                self._problems.setdefault(here, []).append(str(error))
                outputs = [None]
            except MALFORMED as error:
                raise ConversionError(
                    f"{describe(here)}: its configuration is not what Keras writes for a "
                    f"{layer.class_name} ({type(error).__name__}: {error})"
                ) from error
            except PhoneBitError:
                raise
            except Exception as error:  # a mistake of ours: the layer tells where to look
                raise ConversionError(
                    f"{describe(here)}: cannot be translated ({type(error).__name__}: {error})",
                    hint="this is a bug in PhoneBit: please report it",
                ) from error
            values[layer.name, number] = outputs
        return [_lookup(ref, values) for ref in model.outputs]

    def _call(
        self,
        layer: LayerSpec,
        number: int,
        path: LayerPath,
        name: str,
        values: dict[tuple[str, int], Outputs],
    ) -> Outputs:
        if layer.class_name == "InputLayer":
            return [self._input(layer, name)]
        call = layer.calls[number]
        inputs: Outputs = [_lookup(ref, values) for ref in call.refs()]
        if layer.model is not None:
            return self.model(layer.model, path, f"{name}/", inputs)
        if None in inputs or path in self._problems:
            return [None]
        custom = self._knowledge.custom_layer(layer)
        if layer.class_name == "Lambda" and custom is None:
            return self._recorded(layer, path, name, inputs)
        context = LayerContext(
            layer,
            path,
            name,
            self._model.keras_major,
            self._model.weights,
            self._knowledge.quantizers,
            self._nodes,
            self._expected_binary,
        )
        args = map_refs(call.args, lambda ref: _lookup(ref, values))
        kwargs = map_refs(call.kwargs, lambda ref: _lookup(ref, values))
        if custom is not None:
            return [*translate_custom(custom, context, tensors([args, kwargs]))]
        if layer.is_operation:
            return [*call_function(context, layer.class_name, args, {**layer.config, **kwargs})]
        if layer.class_name in RECORDED:
            return [*call_function(context, layer.config["function"], args, kwargs)]
        made = LAYERS[layer.class_name](context, tensors([args, kwargs]))
        return [*made] if isinstance(made, list) else [made]

    def _recorded(self, layer: LayerSpec, path: LayerPath, name: str, inputs: Outputs) -> Outputs:
        """A Lambda layer: its function as a model, whose outputs get the layer's name."""
        assert self._knowledge.lambdas is not None
        known = [tensor for tensor in inputs if tensor is not None]
        spec = self._knowledge.lambdas.record(layer, path, known)
        problems = list(config_problems(spec, self._knowledge, path))
        for here, problem in problems:
            self._problems[here] = [problem]  # again the same if the layer is called again
        if problems:
            return [None]
        prefix, names = f"{name}/", _output_names(spec, name)
        self._nodes.reserved.update(_call_names(spec, prefix), names.values())
        return self.model(spec, path, prefix, inputs, names)

    def _input(self, layer: LayerSpec, name: str) -> Tensor:
        dims = self._input_size(layer, name)
        if not 1 <= len(dims) <= 4 or not all(
            isinstance(extent, int) and 0 < extent < 1 << 20 for extent in dims
        ):
            raise UnsupportedError(f"its shape {dims} is not one to four positive sizes")
        dtype = layer.config.get("dtype") or "float32"
        if dtype not in INPUT_TYPES:
            raise UnsupportedError(
                f"inputs of type {dtype} are not supported, but {', '.join(INPUT_TYPES)}"
            )
        number_type = dtype if dtype.startswith("int") else "float32"
        tensor = Tensor(name, dims, INPUT_TYPES[dtype], number_type)
        self._nodes.used.add(name)
        self._nodes.nodes.append(Node(name, Input(), [], name, sources=[name]))
        self._types[name] = TensorType(tensor.hwc, tensor.dtype)
        self._record(tensor)
        return tensor

    def _input_size(self, layer: LayerSpec, name: str) -> tuple[int, ...]:
        shape = layer.config.get("batch_shape", layer.config.get("batch_input_shape"))
        dims = tuple(shape[1:]) if isinstance(shape, list) else (None, None, None)
        given = self._input_shape
        if given is not None:
            if len(dims) != len(given) or any(
                own not in (None, asked) for own, asked in zip(dims, given, strict=True)
            ):
                raise ConversionError("input_shape contradicts the model", expected=dims, got=given)
            return given
        if None in dims:
            raise ConversionError(
                f"input {name!r} leaves its size open: {dims}",
                hint="pass input_shape=(height, width, channels)",
            )
        return dims


def _output_names(model: ModelSpec, name: str) -> dict[Call, str]:
    """Names for the calls that give a recorded model's outputs."""
    calls = list(dict.fromkeys((ref.layer, ref.call) for ref in model.outputs))
    single = len(calls) == 1
    return {call: name if single else f"{name}/output{i}" for i, call in enumerate(calls)}


def _call_names(model: ModelSpec, prefix: str) -> Iterator[str]:
    """The value names that belong to layers, nested ones included."""
    for layer in model.layers:
        for number in range(len(layer.calls)):
            name = prefix + call_name(layer, number)
            yield name
            if layer.model is not None:
                yield from _call_names(layer.model, f"{name}/")


def _lookup(ref: TensorRef, values: dict[tuple[str, int], Outputs]) -> Tensor | None:
    outputs = values.get((ref.layer, ref.call))
    if outputs == [None]:  # an unsupported layer, with any number of outputs
        return None
    if outputs is None or not 0 <= ref.output < len(outputs):
        raise ConversionError(f"output {ref.output} of layer {ref.layer!r} does not exist")
    return outputs[ref.output]
