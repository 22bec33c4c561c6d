"""The arguments of layer calls, as the dialects of Keras write them (``inbound_nodes``).

* Keras 2 layers: ``[[layer, node, tensor, kwargs], ...]``, one list a call;
* Keras 2 TensorFlow functions: ``[layer, node, tensor, kwargs]``, constants as
  ``["_CONSTANT_VALUE", -1, value, kwargs]``, tensors in ``kwargs`` as ``[layer, node, tensor]``;
* Keras 3: ``{"args": ..., "kwargs": ...}`` with ``__keras_tensor__`` leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from phonebit.errors import ConversionError

MAX_DEPTH: Final = 16
"""Lists nested in call arguments, and models nested in models."""


@dataclass(frozen=True)
class TensorRef:
    """Output number ``output`` of call number ``call`` of the layer named ``layer``."""

    layer: str
    call: int
    output: int


@dataclass
class Call:
    """One application of a layer; leaves of ``args`` and ``kwargs`` are TensorRefs or constants."""

    args: list[Any]
    kwargs: dict[str, Any]

    def refs(self) -> list[TensorRef]:
        """All tensors that this call reads."""
        return list(leaves([self.args, self.kwargs]))


def leaves(value: Any) -> Iterator[TensorRef]:
    """The TensorRefs inside nested lists and dicts, in order."""
    if isinstance(value, TensorRef):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)


def map_refs(value: Any, function: Callable[[TensorRef], Any]) -> Any:
    """``value`` with every TensorRef inside nested lists and dicts replaced."""
    if isinstance(value, TensorRef):
        return function(value)
    if isinstance(value, list):
        return [map_refs(item, function) for item in value]
    if isinstance(value, dict):
        return {key: map_refs(item, function) for key, item in value.items()}
    return value


def parse_call(node: Any, layer: str) -> Call:
    """Decodes one element of the ``inbound_nodes`` of the layer called ``layer``."""
    if isinstance(node, dict) and "args" in node:  # Keras 3
        args = _decode_keras3(node.get("args", []), layer)
        kwargs = _decode_keras3(node.get("kwargs", {}), layer)
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise ConversionError(f"layer {layer!r}: its call arguments are damaged")
        return Call(args, kwargs)
    found: dict[str, Any] = {}
    return Call([decode_keras2(node, layer, found)], found)


def _is_history(value: list[Any]) -> bool:
    return (
        len(value) in (3, 4)
        and isinstance(value[0], str)
        and isinstance(value[1], int)
        and (isinstance(value[2], int) or value[0] == "_CONSTANT_VALUE")
    )


def decode_keras2(value: Any, layer: str, kwargs: dict[str, Any] | None, depth: int = 0) -> Any:
    """Decodes a Keras 2 node; what leaves carry as fourth element is merged into ``kwargs``."""
    _check_depth(depth, layer)
    if isinstance(value, dict):
        return {k: decode_keras2(v, layer, kwargs, depth + 1) for k, v in value.items()}
    if not isinstance(value, list):
        return value
    if not _is_history(value):
        return [decode_keras2(item, layer, kwargs, depth + 1) for item in value]
    if kwargs is not None and len(value) == 4 and isinstance(value[3], dict):
        for key, item in value[3].items():
            kwargs[key] = decode_keras2(item, layer, None, depth + 1)
    if value[0] == "_CONSTANT_VALUE":
        return value[2]
    return TensorRef(value[0], value[1], value[2])


def _decode_keras3(value: Any, layer: str, depth: int = 0) -> Any:
    _check_depth(depth, layer)
    if isinstance(value, list):
        return [_decode_keras3(item, layer, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    kind, config = value.get("class_name"), value.get("config")
    if kind == "__keras_tensor__" and isinstance(config, dict):
        history = config.get("keras_history")
        if not isinstance(history, list) or len(history) != 3 or not _is_history(history):
            raise ConversionError(f"layer {layer!r}: an input has no valid keras_history")
        return TensorRef(history[0], history[1], history[2])
    if kind in ("__numpy__", "__tensor__") and isinstance(config, dict):
        return config.get("value")
    if kind == "__tuple__":
        return _decode_keras3(value.get("items", []), layer, depth + 1)
    return {k: _decode_keras3(v, layer, depth + 1) for k, v in value.items()}


def _check_depth(depth: int, layer: str) -> None:
    if depth > MAX_DEPTH:
        raise ConversionError(
            f"layer {layer!r}: call arguments are nested more than {MAX_DEPTH} deep"
        )
