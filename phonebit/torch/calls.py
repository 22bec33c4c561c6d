"""What the parts of a module are called with when the module runs on an example."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch

from phonebit.converter.importers.errors import first_line
from phonebit.converter.importers.torch.export import evaluation_mode
from phonebit.errors import ConversionError


@dataclass
class Calls:
    """The calls of one part.

    Attributes:
        example: the tensors of the first call; None if it was called with other arguments, or with
            other shapes later.
        count: how often it was called.
    """

    example: tuple[Any, ...] | None
    count: int = 1


def recorded_calls(module: Any, example: tuple[Any, ...]) -> dict[int, Calls]:
    """Runs a module in evaluation mode.

    Returns:
        The calls of each of its parts that is called, by the part's ``id``.

    Raises:
        ConversionError: It does not run on the example.
    """
    calls: dict[int, Calls] = {}

    def note(part: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        is_plain = args and not kwargs and all(isinstance(x, torch.Tensor) for x in args)
        tensors = tuple(x.detach() for x in args) if is_plain else None
        known = calls.get(id(part))
        if known is None:
            calls[id(part)] = Calls(tensors)
            return
        known.count += 1
        if known.example and _forms(known.example) != _forms(tensors or ()):
            known.example = None

    with contextlib.ExitStack() as stack:
        stack.enter_context(evaluation_mode(module))
        stack.enter_context(torch.no_grad())
        for part in module.modules():
            hook = part.register_forward_pre_hook(note, with_kwargs=True)
            stack.callback(hook.remove)
        try:
            module(*example)
        except Exception as error:  # whatever the user's own forward function raises
            raise ConversionError(
                f"does not run on the example: {first_line(error)}",
                where=type(module).__name__,
                hint="pass a tensor, or a tuple of tensors, that the module takes",
            ) from error
    return calls


def _forms(tensors: tuple[Any, ...]) -> list[Any]:
    return [(tuple(x.shape[1:]), x.dtype) for x in tensors]
