"""``phonebit.accelerate``. PyTorch is imported only inside functions."""

from __future__ import annotations

import copy
import re
import warnings
from typing import TYPE_CHECKING, Any, Final

from phonebit.errors import ConversionError, DeviceError, InputError, PhoneBitWarning

if TYPE_CHECKING:
    from phonebit.converter.passes.decide_zeros import Zeros

OLDEST: Final = (2, 6)
"""PyTorch that ``pyproject.toml`` asks for."""


def accelerate(module: Any, example: Any, *, zeros: Zeros = "auto") -> Any:
    """Make a PyTorch module run on PhoneBit, in PyTorch, on the CPU.

    The whole network where it converts; else the largest parts of its module tree that do and have
    a binary layer, and the rest in PyTorch. ::

        fast = phonebit.accelerate(module, torch.zeros(1, 3, 224, 224))
        print(fast.report)
        scores = fast(images)

    Integer layers give PyTorch's results bit for bit, float layers within rounding
    (``phonebit.verify`` compares them). It uses as many threads as PyTorch does
    (``torch.set_num_threads``). It can be pickled and copied, its state is in ``state_dict()``, and
    ``torch.export`` and ``torch.compile`` keep the operator ``torch.ops.phonebit.forward``.

    Args:
        module: a ``torch.nn.Module`` of float32 parameters on the CPU; it is not changed.
        example: a tensor, or a tuple of tensors, that the module takes, batch first. Shapes after
            the batch are fixed; the batch may be of any size later.
        zeros: as in ``phonebit.convert``; "exact" gives PyTorch's sign(0) = 0 everywhere.

    Returns:
        A module in evaluation mode, with a ``report``; results of PhoneBit have no gradients. The
        module itself, with a ``PhoneBitWarning`` that says why, if no part of it has a binary
        layer that can run on PhoneBit.

    Raises:
        ConversionError: PyTorch is absent or too old, or the module does not run on the example.
        DeviceError: Module or example are not on the CPU.
        InputError: The arguments are no module and no tensors.
        VerificationError: The converter changed a result: a bug in PhoneBit.
    """
    check_version()
    tensors = _checked(module, example)
    from phonebit.torch.calls import recorded_calls
    from phonebit.torch.module import AcceleratedModule
    from phonebit.torch.partition import Partition

    partition = Partition(recorded_calls(module, tensors), zeros)
    partition.walk("", module)
    report = partition.report
    if not report.parts:
        return _unchanged(module, f"no binary layer that can run on PhoneBit\n{report}")
    if id(module) in partition.replaced:
        whole = partition.replaced[id(module)]
        whole.report = report
        return whole
    try:
        replaced = copy.deepcopy(module, dict(partition.replaced))
        result = AcceleratedModule(replaced, report)
        recorded_calls(result, tensors)
    except Exception as error:  # of the user's own classes, or a use of parts besides calling them
        return _unchanged(module, f"its parts cannot be replaced: {error}")
    return result


def check_version() -> None:
    """Refuses to go on without a PyTorch that is new enough.

    Raises:
        ConversionError: It is absent or too old.
    """
    try:
        import torch
    except ImportError as error:
        raise ConversionError(
            "PyTorch is not installed", where="accelerate", hint="pip install 'phonebit[torch]'"
        ) from error
    found = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))
    if found < OLDEST:
        raise ConversionError(
            "this version of PyTorch is too old",
            where="accelerate",
            expected=f"{'.'.join(map(str, OLDEST))} or later",
            got=torch.__version__,
            hint="pip install 'phonebit[torch]'",
        )


def _checked(module: Any, example: Any) -> tuple[Any, ...]:
    import torch

    if not isinstance(module, torch.nn.Module):
        raise InputError("not a torch.nn.Module", where="accelerate", got=type(module).__name__)
    tensors = tuple(example) if isinstance(example, list | tuple) else (example,)
    if not tensors or not all(isinstance(x, torch.Tensor) for x in tensors):
        raise InputError(
            "the example is no tensor",
            where="accelerate",
            expected="a tensor, or a tuple of tensors",
            got=", ".join(type(x).__name__ for x in tensors) or "nothing",
        )
    held = [*module.parameters(), *module.buffers(), *tensors]
    others = sorted({str(x.device) for x in held if x.device.type != "cpu"})
    if others:
        raise DeviceError(
            "PhoneBit computes PyTorch's tensors on the CPU",
            where="accelerate",
            expected="module and example on the CPU",
            got=", ".join(others),
            hint="pass module.cpu() and example.cpu()",
        )
    return tensors


def _unchanged(module: Any, reason: str) -> Any:
    text = f"{type(module).__name__} is returned unchanged: {reason}"
    warnings.warn(text, PhoneBitWarning, stacklevel=3)
    return module
