"""From a module to a graph of ATen operators, by ``torch.export``."""

from __future__ import annotations

import contextlib
import io
import logging
import textwrap
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.errors import first_line, interruptible
from phonebit.converter.importers.torch.nodes import NOT_THE_USERS
from phonebit.errors import ConversionError

MAX_LINE: Final = 100
"""Characters of the user's source that a message quotes."""


@contextlib.contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """A module in eval(); afterwards each part has the mode and the attributes that it had.

    A forward function may keep what it computes, which is no tensor of numbers while it is traced.
    After Ctrl-C PyTorch's class of modules is as it was, too: it may come while a tracer puts back
    what it replaces there.
    """
    from torch.nn import Module

    replaced = {name: vars(Module)[name] for name in ("__call__", "__getattr__")}
    before = [
        (kept, dict(kept))
        for part in module.modules()
        for kept in (vars(part), part._parameters, part._buffers)
    ]
    try:
        module.eval()
        with interruptible():
            yield
    except KeyboardInterrupt:
        for name, function in replaced.items():
            setattr(Module, name, function)
        raise
    finally:
        try:
            _put_back(before)
        except KeyboardInterrupt:  # a module without its parameters would be of no use
            _put_back(before)
            raise


def _put_back(before: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for kept, content in before:
        kept.clear()
        kept.update(content)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's own warnings: what concerns the user is in the exception."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def export_module(module: Any, example: Sequence[Any]) -> Any:
    """Exports a module in eval() and without gradients.

    Args:
        module: A ``torch.nn.Module``; its mode is the same afterwards.
        example: Tensors to trace it with.

    Raises:
        ConversionError: It cannot be traced, e.g. because it branches on values of tensors.
    """
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        raise ConversionError(
            "is TorchScript, which torch.export cannot trace",
            where=type(module).__name__,
            hint="convert the module of Python that it was made from",
        )
    if any(isinstance(p, torch.nn.UninitializedParameter) for p in module.parameters()):
        raise ConversionError(
            "has layers whose shapes are not known (LazyLinear, LazyConv2d)",
            where=type(module).__name__,
            hint="call the module once with an example, then convert it",
        )
    other = {str(p.dtype) for p in module.parameters() if p.dtype.is_floating_point}
    if other - {"torch.float32"}:
        raise ConversionError(
            "parameters that are not float32",
            where=type(module).__name__,
            got=", ".join(sorted(other)),
            hint="convert module.float()",
        )
    if any(parameter.device.type != "cpu" for parameter in module.parameters()):
        raise ConversionError(
            "parameters that are not on the CPU",
            where=type(module).__name__,
            hint="convert module.cpu()",
        )
    from phonebit.converter.importers.torch.tracing import visible

    with evaluation_mode(module), torch.no_grad(), quiet(), visible(module):
        try:
            return torch.export.export(module, tuple(example), strict=False)
        except ConversionError:
            raise
        except Exception as error:  # whatever the user's own forward function raises, too
            text = f"torch.export cannot trace the module: {first_line(error)}{_user_line(error)}"
            where = type(module).__name__
            raise ConversionError(text, where=where, hint=_advice(error)) from error


def _advice(error: Exception) -> str:
    """What to do about a failed export."""
    text = str(error).lower()
    if "data-dependent" in text or "data dependent" in text:
        return (
            "branches on values of tensors must be written with torch.where, and no tensor may "
            "leave PyTorch (.item(), .numpy())"
        )
    return "the module must run on the example input: check its shape, and that line"


def _user_line(error: Exception) -> str:
    """The innermost line outside PyTorch and PhoneBit that an exception passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(part in f.filename for part in NOT_THE_USERS)]
    if not own:
        return ""
    line = textwrap.shorten(own[-1].line or "", MAX_LINE, placeholder=" ...")
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno}: {line})"


def example_tensors(example_input: Any, input_shape: Sequence[int] | None) -> tuple[Any, ...]:
    """The tensors to trace a module with.

    Args:
        example_input: A tensor or array, or a sequence of them; or None.
        input_shape: (N, C, H, W), if there is no example.

    Raises:
        ConversionError: Neither is given, or the shape is no list of positive sizes.
    """
    import torch

    if example_input is not None:
        several = isinstance(example_input, list | tuple)
        return tuple(torch.as_tensor(x) for x in (example_input if several else [example_input]))
    if input_shape is None:
        raise ConversionError(
            "a PyTorch module does not know the shape of its input",
            hint="pass example_input, or input_shape=(N, C, H, W) (--input-shape 1,3,224,224)",
        )
    shape = tuple(input_shape)
    if not shape or not all(isinstance(n, int) and 0 < n < 1 << 20 for n in shape):
        raise ConversionError("input_shape", expected="positive sizes (N, C, H, W)", got=shape)
    return (torch.zeros(shape),)
