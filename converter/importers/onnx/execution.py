"""Executes an ONNX model: by ONNX Runtime, or by the reference evaluator of the package onnx.

ONNX Runtime runs models of ONNX's own operators where it is installed. The reference evaluator
knows QONNX's and FINN's quantizers, too, by the classes below.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.nodes import ONNX_DOMAINS, is_of_quantizers
from phonebit.converter.importers.onnx.tensors import Tensors
from phonebit.converter.importers.torch.translation import Translation
from phonebit.converter.importers.torch.value_order import Runner

Array = NDArray[Any]


class OnnxRunner(Runner):
    """A model; it is executed by "ONNX Runtime" or "onnx.reference"."""

    def __init__(self, model: Any, folder: Path | None, translation: Translation) -> None:
        from onnx.helper import tensor_dtype_to_np_dtype

        super().__init__(translation)
        known = {output for node in model.graph.node for output in node.output}
        known |= {value.name for value in (*model.graph.input, *model.graph.initializer)}
        aliases = {a: b for a, b in translation.estimators.items() if b in known}
        self._wanted = {
            value: aliases.get(name, name)
            for value, (name, _) in translation.tensors.items()
            if name in known
        }
        self._model = _with_values(model, folder, translation, aliases, set(self._wanted.values()))
        standard = all(node.domain in ONNX_DOMAINS for node in model.graph.node)
        run = _by_runtime(self._model) if standard else None
        self.executor = "onnx.reference" if run is None else "ONNX Runtime"
        self._run = run or _by_reference(self._model)
        self._types = {
            value.name: tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            for value in self._model.graph.input
        }

    def _tensors(self, feeds: dict[str, Array]) -> dict[str, Array]:
        feeds = {name: array.astype(self._types[name]) for name, array in feeds.items()}
        names = sorted(set(self._wanted.values()) - set(feeds))
        results = self._run(names, feeds) if names else []
        tensors = {**feeds, **dict(zip(names, results, strict=True))}
        return {value: np.asarray(tensors[name]) for value, name in self._wanted.items()}


def _with_values(
    model: Any, folder: Path | None, translation: Translation, aliases: dict[str, str], wanted: Any
) -> Any:
    """A copy whose outputs are all its values, with estimators replaced and shapes fixed."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    tensors = Tensors(folder)
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(
                numpy_helper.from_array(tensors.array(tensor, tensor.name), tensor.name)
            )
    stored = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        node.ClearField("name")  # which need not be unique, but for ONNX Runtime
        node.domain = "" if node.domain in ONNX_DOMAINS else node.domain
        for index, name in enumerate(node.input):
            node.input[index] = aliases.get(name, name)
    inputs = [value for value in graph.input if value.name not in stored]
    for value in inputs:
        shape = translation.tensors[value.name][1].indices.shape
        fixed = helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, shape)
        value.CopyFrom(fixed)
    del graph.output[:]
    for name in sorted(wanted - {value.name for value in inputs}):
        graph.output.append(helper.make_empty_tensor_value_info(name))
    del graph.value_info[:]  # shapes of another batch would contradict what is computed
    versions = {entry.domain for entry in copy.opset_import}
    for domain in {node.domain for node in graph.node} - versions - set(ONNX_DOMAINS):
        copy.opset_import.append(helper.make_opsetid(domain, 1))
    return copy


def _by_runtime(model: Any) -> Any:
    """ONNX Runtime, or None where it is not installed or lacks an operator in this version."""
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # its exceptions have no base of their own
        return None
    return session.run


def _by_reference(model: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    domains = {node.domain for node in model.graph.node}
    evaluator = ReferenceEvaluator(model, new_ops=_quantizers(domains))

    def run(names: list[str], feeds: dict[str, Array]) -> Any:
        with np.errstate(all="ignore"):
            return evaluator.run(names, feeds)

    return run


def _quantizers(domains: set[str]) -> list[Any]:
    """QONNX's and FINN's operators for the reference evaluator, one class for each domain.

    BatchNormalization is among them: the evaluator's own mixes in the statistics of the batch
    before opset 14.
    """
    from onnx.reference.op_run import OpRun

    functions = {
        "Quant": _quant,
        "IntQuant": _quant,
        "BipolarQuant": _bipolar,
        "Trunc": _trunc,
        "MultiThreshold": _multi_threshold,
        "XnorPopcountMatMul": _equal_bits,
    }

    def make(domain: str, name: str, function: Any) -> Any:
        def run(self: Any, *inputs: Array, **attributes: Any) -> tuple[Array]:
            given = {a.name: _plain(a) for a in self.onnx_node.attribute}
            return (np.asarray(function(given, *inputs), np.float32),)

        return type(name, (OpRun,), {"op_domain": domain, "_run": run})

    return [make("", "BatchNormalization", _batch_norm)] + [
        make(domain, name, function)
        for domain in domains
        if domain == "" or is_of_quantizers(domain)
        for name, function in functions.items()
    ]


def _plain(attribute: Any) -> Any:
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _batch_norm(
    given: dict[str, Any], x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Array:
    shape = (1, -1, *(1,) * (x.ndim - 2))
    factor = scale / np.sqrt(variance + np.float32(given.get("epsilon", 1e-5)))
    result: Array = (x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)
    return result


def _limits(given: dict[str, Any], bits: Array) -> tuple[float, float]:
    """The minimum and maximum integer of a width."""
    width, narrow = float(np.asarray(bits).item()), given.get("narrow", 0)
    if given.get("signed", 1):
        return -(2 ** (width - 1)) + narrow, 2 ** (width - 1) - 1
    return 0.0, 2**width - 1 - narrow


def _round(mode: str, x: Array) -> Array:
    whole: dict[str, Any] = {
        "ROUND": np.round,
        "HALF_EVEN": np.round,
        "CEIL": np.ceil,
        "FLOOR": np.floor,
        "UP": lambda v: np.sign(v) * np.ceil(np.abs(v)),
        "DOWN": np.fix,
        "HALF_UP": lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5),
        "HALF_DOWN": lambda v: np.sign(v) * np.ceil(np.abs(v) - 0.5),
    }
    rounded: Array = whole[mode.upper()](x)
    return rounded


def _quant(given: dict[str, Any], x: Array, scale: Array, zero: Array, bits: Array) -> Array:
    y = x / scale + zero
    if given.get("signed", 1) and np.asarray(bits).item() == 1:
        y = np.where(y >= 0, np.float32(1), np.float32(-1))
    else:
        low, high = _limits(given, bits)
        y = _round(given.get("rounding_mode", "ROUND"), np.clip(y, low, high))
    result: Array = (y - zero) * scale
    return result


def _bipolar(given: dict[str, Any], x: Array, scale: Array) -> Array:
    signs: Array = np.where(x >= 0, np.float32(1), np.float32(-1)) * scale
    return signs


def _trunc(
    given: dict[str, Any], x: Array, scale: Array, zero: Array, bits: Array, *rest: Array
) -> Array:
    mode = given.get("rounding_mode", "FLOOR")
    y = np.round(x / scale + zero)
    result: Array
    if len(rest) == 1:
        y = _round(mode, y / np.float32(2.0 ** (bits - rest[0])))
        result = (y - zero) * scale
        return result
    factor = np.float32(2 ** np.round(np.log2(rest[0] / scale)))
    low, high = _limits(given, rest[1])
    y = _round(mode, np.clip(y / factor, low, high))
    result = (y - zero / factor) * rest[0]
    return result


def _multi_threshold(given: dict[str, Any], x: Array, thresholds: Array) -> Array:
    layout = given.get("data_layout") or {2: "NC", 3: "NWC", 4: "NCHW"}.get(x.ndim, "NC")
    axis = layout.index("C") if "C" in layout else 1
    moved = np.moveaxis(x, axis, -1)[..., None]
    counts = np.moveaxis((moved >= thresholds).sum(axis=-1), -1, axis).astype(np.float32)
    scale, bias = given.get("out_scale", 1.0), given.get("out_bias", 0.0)
    scaled: Array = np.float32(scale) * counts + np.float32(bias)
    return scaled


def _equal_bits(given: dict[str, Any], a: Array, b: Array) -> Array:
    count: Array = ((2 * a - 1) @ (2 * b - 1) + a.shape[-1]) * np.float32(0.5)
    return count
