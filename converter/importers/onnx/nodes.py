"""Nodes of an ONNX graph: their attributes as Python values, and what they are called."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from phonebit.converter.importers.onnx.tensors import Tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.errors import ConversionError

SCOPES: Final = "pkg.torch.onnx.name_scopes"
"""Where PyTorch's exporter writes the modules around a node."""
QUANTIZER_DOMAINS: Final = ("onnx.brevitas", "qonnx", "finn")
"""Packages of quantizers; their domains have one of these names, or begin with it and a point."""
ONNX_DOMAINS: Final = ("", "ai.onnx")


def is_of_quantizers(domain: str) -> bool:
    """Whether a domain is one of Brevitas, QONNX or FINN: "finn", "finn.custom_op.general", ..."""
    return any(f"{domain}.".startswith(f"{package}.") for package in QUANTIZER_DOMAINS)


@dataclass
class Node:
    """One node.

    Attributes:
        op: The operator.
        domain: Whose operator it is; "" is ONNX's own.
        version: Of the operators of this domain.
        inputs: What it reads; None where an optional input is left out.
        outputs: Names of its results; "" where nobody reads one.
        path: What it is called, see ``path_of``.
        attributes: By name: numbers, texts, arrays and lists of them.
    """

    op: str
    domain: str
    version: int
    inputs: list[Call | None]
    outputs: list[str]
    path: str
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The operator as messages call it."""
        return self.op if self.domain in ONNX_DOMAINS else f"{self.domain}.{self.op}"

    def input(self, index: int) -> Call | None:
        """An input, or None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def operand(self, index: int) -> Call:
        """An input that must be there.

        Raises:
            UnsupportedError: It is left out.
        """
        call = self.input(index)
        if call is None:
            raise UnsupportedError(f"lacks its input {index}")
        return call

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default."""
        return self.attributes.get(name, default)


@cache
def _defined_kinds(domain: str, op: str) -> dict[str, int]:
    """The types of an operator's attributes, the same in each version; none where unknown."""
    from onnx import defs

    schemas = (s for s in defs.get_all_schemas_with_history() if s.name == op)
    own = (s for s in schemas if s.domain == ("" if domain == "ai.onnx" else domain))
    newest = max(own, key=lambda schema: schema.since_version, default=None)
    if newest is None:
        return {}
    return {name: int(each.type.value) for name, each in newest.attributes.items()}


def attributes_of(proto: Any, tensors: Tensors, where: str) -> dict[str, Any]:
    """The attributes of a ``NodeProto``.

    Raises:
        UnsupportedError: One is a graph, or NaN.
        ConversionError: A tensor is damaged.
    """
    from onnx import AttributeProto

    result: dict[str, Any] = {}
    kinds = _defined_kinds(proto.domain, proto.op_type)
    for attribute in proto.attribute:
        kind = attribute.type
        if kind != kinds.get(attribute.name, kind):
            names = AttributeProto.AttributeType.DESCRIPTOR.values_by_number
            expected, got = (
                names[number].name.lower() if number in names else number
                for number in (kinds[attribute.name], kind)
            )
            raise ConversionError(
                f"its attribute {attribute.name!r} is of another type",
                where=where,
                expected=expected,
                got=got,
            )
        if kind == AttributeProto.FLOAT:
            result[attribute.name] = float(attribute.f)
            if math.isnan(attribute.f):
                raise UnsupportedError(f"has an attribute {attribute.name!r} that is NaN")
        elif kind == AttributeProto.INT:
            result[attribute.name] = int(attribute.i)
        elif kind == AttributeProto.STRING:
            result[attribute.name] = attribute.s.decode("utf-8", "replace")
        elif kind == AttributeProto.STRINGS:
            result[attribute.name] = [text.decode("utf-8", "replace") for text in attribute.strings]
        elif kind == AttributeProto.TENSOR:
            result[attribute.name] = tensors.array(attribute.t, where)
        elif kind == AttributeProto.FLOATS:
            result[attribute.name] = [float(number) for number in attribute.floats]
        elif kind == AttributeProto.INTS:
            result[attribute.name] = [int(number) for number in attribute.ints]
        elif kind in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            raise UnsupportedError("holds a graph of its own")
        else:
            raise UnsupportedError(f"has an attribute {attribute.name!r} of another type")
    return result


def path_of(proto: Any, index: int) -> str:
    """What a node is called: like the module that it comes from, where the exporter says so.

    PyTorch's exporters write "/layer1/layer1.0/conv1/Conv", or the modules in the node's metadata;
    others name the node, or only its result.
    """
    for entry in proto.metadata_props:
        if entry.key == SCOPES:
            scopes = re.findall(r"'([^']*)'", entry.value)
            return scopes[-2] if len(scopes) > 1 else ""
    name = proto.name or next((output for output in proto.output if output), f"node_{index}")
    parts = [part for part in name.split("/") if part]
    if not name.startswith("/"):
        return ".".join(parts)
    path = ""
    for part in parts[:-1]:
        path = part if part.startswith(f"{path}.") or not path else f"{path}.{part}"
    return path
