"""From a module to the ``NetworkModule`` that stands for it."""

from __future__ import annotations

from typing import Any

import torch

from phonebit.acceleration_report import AcceleratedPart
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.torch.importer import TorchSource, open_torch
from phonebit.converter.importers.torch.nodes import type_of, user_outputs
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.errors import ConversionError
from phonebit.torch.module import NetworkModule, TensorForm


def converted(
    name: str, module: Any, example: tuple[Any, ...], zeros: Zeros
) -> tuple[Any, AcceleratedPart]:
    """Converts a module.

    Args:
        name: of the module, for the report.
        module: on the CPU.
        example: tensors that it takes.
        zeros: as in ``phonebit.convert``.

    Returns:
        The ``NetworkModule`` and what the report says of it.

    Raises:
        ConversionError: It cannot be converted, or returns more than tensors.
    """
    source = open_torch(module, example_input=example)
    outputs = _outputs(source)
    structure = source.program.call_spec.out_spec
    if structure.num_leaves != len(outputs) or len(source.graph.outputs) != len(outputs):
        raise ConversionError("returns more than tensors that depend on its input")
    conversion = convert_graph(source.graph, origin={"framework": "torch"}, zeros=zeros)
    forms = [
        TensorForm(info.name, tuple(x.shape[1:]), x.dtype)
        for info, x in zip(conversion.report.inputs, example, strict=True)
    ]
    tree = None if structure.is_leaf() else structure
    whole = NetworkModule(conversion.content, forms, outputs, tree)
    return whole, AcceleratedPart.of(name, conversion.report)


def _outputs(source: TorchSource) -> list[TensorForm]:
    node = next(node for node in source.program.graph.nodes if node.op == "output")
    forms = []
    for output, name in user_outputs(source.program, node):
        shape, dtype = type_of(output)
        if shape[:1] != (source.translation.batch,):
            raise ConversionError("an output without the batch as its first axis", got=shape)
        forms.append(TensorForm(name, shape[1:], getattr(torch, str(dtype))))
    return forms
