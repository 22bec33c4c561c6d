"""What ``torch.export`` does not see by itself: numbers that a module keeps, and ``y.data = v``.

Quantizers of training code branch on their own state (``if self.init == 0``, ``int(self.bits)``):
buffers, parameters and attributes of one number. At inference these are constants. They, and what
is computed from them alone, keep their numbers while everything else is traced.

This file needs PyTorch; import it inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only

from phonebit.errors import ConversionError


@contextmanager
def visible(module: Any) -> Iterator[None]:
    """Traces inside see the module's numbers, and follow assignments to ``.data``.

    Args:
        module: In ``evaluation_mode``, which puts its parameters and buffers back.
    """
    known: dict[int, tuple[Any, str]] = {}
    copies: dict[int, Any] = {}
    for path, part in module.named_modules():
        for kept in (part._parameters, part._buffers, vars(part)):
            for name, tensor in list(kept.items()):
                if isinstance(tensor, torch.Tensor) and tensor.numel() == 1:
                    copy = copies.setdefault(id(tensor), tensor.detach().clone())
                    known[id(copy)] = copy, f"{path}.{name}".lstrip(".")
                    del kept[name]
                    vars(part)[name] = copy
    mode = _Tracing(known)
    hook = module.register_forward_hook(lambda _module, _inputs, result: mode.current(result))
    try:
        with mode:
            yield
    finally:
        hook.remove()


class _Tracing(TorchFunctionMode):
    """Computes what depends on known tensors alone, and passes everything else on.

    Objects are told apart by their ids; they are kept, so that no other gets the same.
    """

    def __init__(self, known: Mapping[int, tuple[Any, str]]) -> None:
        super().__init__()
        self._known = dict(known)
        self._assigned: dict[int, tuple[Any, Any]] = {}

    def current(self, value: Any) -> Any:
        """Nested arguments with the last tensor that was assigned to the data of each."""
        if not self._assigned:
            return value
        return tree_map_only(torch.Tensor, lambda t: self._assigned.get(id(t), (t, t))[1], value)

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Called by PyTorch for each function of tensors.

        Raises:
            ConversionError: The module's own state is computed from its input.
        """
        is_data = getattr(function, "__self__", None) is torch.Tensor.data
        if is_data and function.__name__ == "__set__":
            self._assigned[id(args[0])] = args[0], self.current(args[1])
            return None
        args, kwargs = self.current((args, kwargs or {}))
        if is_data:
            function = torch.Tensor.detach
        if function is torch.fused_moving_avg_obs_fake_quant:
            return self._fake_quantized(*args)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        known = [tensor for tensor in tensors if id(tensor) in self._known]
        if known and len(known) == len(tensors):
            with _disable_current_modes():
                result = function(*args, **kwargs)
            for tensor in tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self._known.setdefault(id(tensor), (tensor, self._known[id(known[0])][1]))
            return result
        if known and known[0] is args[0] and _writes(function.__name__):
            raise _not_constant(f"computes {self._known[id(known[0])][1]!r} from")
        return function(*args, **kwargs)

    def _fake_quantized(
        self, x: Any, observes: Any, quantizes: Any, _low: Any, _high: Any, scale: Any,
        zero_point: Any, _momentum: Any, quant_min: int, quant_max: int, axis: int,
        per_channel: bool = False, _symmetric: bool = False,
    ) -> Any:  # fmt: skip
        """torch.ao's observer and quantizer in one function, which writes to its operands."""
        with _disable_current_modes():
            if observes:
                raise _not_constant("has a fake quantizer that observes")
            if not quantizes:
                return x
        if per_channel:
            return torch.fake_quantize_per_channel_affine(
                x, scale, zero_point, axis, quant_min, quant_max
            )
        return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, quant_min, quant_max)


def _not_constant(what: str) -> ConversionError:
    return ConversionError(
        f"{what} its input: its state is no constant",
        hint="train or calibrate the module first; then switch off observers (module.apply("
        "torch.ao.quantization.disable_observer)) and what the first batch initialises",
    )


def _writes(name: str) -> bool:
    """Whether a function of this name writes to its first operand."""
    return name == "__setitem__" or name.startswith("__i") or name.rstrip("_") + "_" == name
