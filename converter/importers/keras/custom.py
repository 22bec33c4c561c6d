"""Layers of the user's own, expressed by PhoneBit's in the user's function."""

from __future__ import annotations

from phonebit.converter.importers.keras.graph import LayerContext, Tensor, UnsupportedError
from phonebit.converter.importers.keras.plugin import CustomLayer, LayerFunction
from phonebit.converter.importers.keras.weights import NoWeights
from phonebit.errors import ConversionError


def translate_custom(
    function: LayerFunction, ctx: LayerContext, inputs: list[Tensor]
) -> list[Tensor | None]:
    """Lets ``function`` emit the nodes of one call of a layer, and names its results.

    One result gets the layer's name, several are called "<layer>/output0" and so on.

    Raises:
        UnsupportedError: The function fails, or returns something else than tensors.
    """
    first = len(ctx.graph.nodes)
    try:
        results = function(CustomLayer(ctx, inputs))
    except Exception as error:  # the user's code
        if isinstance(ctx.weights, NoWeights):  # zeros in place of weights may well upset it
            del ctx.graph.nodes[first:]
            return [None]
        if isinstance(error, ConversionError | UnsupportedError):
            raise
        name = getattr(function, "__name__", "function")
        raise UnsupportedError(
            f"its custom_layers function {name} fails: {type(error).__name__}: {error}"
        ) from error
    outputs = [results] if isinstance(results, Tensor) else results
    if not isinstance(outputs, list | tuple) or not all(isinstance(x, Tensor) for x in outputs):
        raise UnsupportedError(f"its custom_layers function returns {results!r}, no tensor")
    return list(_named(ctx, first, list(outputs)))


def _named(ctx: LayerContext, first: int, outputs: list[Tensor]) -> list[Tensor]:
    names: dict[str, str] = {}
    nodes = ctx.graph.nodes[first:]
    own = {node.value for node in nodes}
    for index, output in enumerate(outputs):
        if output.value in own:
            names[output.value] = ctx.name if len(outputs) == 1 else f"{ctx.name}/output{index}"
    for node in nodes:
        node.inputs = [names.get(value, value) for value in node.inputs]
        node.value = names.get(node.value or "", node.value)
    ctx.graph.used.update(names.values())
    return [Tensor(names.get(x.value, x.value), x.shape, x.dtype) for x in outputs]
