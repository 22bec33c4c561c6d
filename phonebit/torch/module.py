"""Modules that stand for others and run on PhoneBit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from phonebit.acceleration_report import AccelerationReport
from phonebit.errors import DeviceError, InputError
from phonebit.torch import operator


@dataclass(frozen=True)
class TensorForm:
    """What a module takes or gives.

    Attributes:
        name: of an input, as messages say it.
        shape: without the batch.
        dtype: of PyTorch.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any

    def fits(self, x: Any) -> bool:
        """Whether it is such a tensor, of any batch, on the CPU."""
        is_tensor = isinstance(x, torch.Tensor)
        return is_tensor and x.is_cpu and x.dtype == self.dtype and x.shape[1:] == self.shape


class NetworkModule(torch.nn.Module):
    """A network, or a part of one, that runs on PhoneBit. ``phonebit.accelerate`` makes it.

    Args:
        content: the ``.pbit`` file.
        inputs: what the module takes, in order.
        outputs: what it gives, in order.
        structure: PyTorch's tree of the outputs; None: one tensor.

    Attributes:
        report: of a whole network; None of a part.
    """

    def __init__(
        self,
        content: bytes,
        inputs: Sequence[TensorForm],
        outputs: Sequence[TensorForm],
        structure: Any = None,
    ) -> None:
        super().__init__()
        self.register_buffer("network", operator.network_tensor(content))
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.sizes = [size for form in outputs for size in (len(form.shape), *form.shape)]
        self.structure = structure
        self.report: AccelerationReport | None = None
        self._gives_floats = all(form.dtype == torch.float32 for form in outputs)
        self.eval()

    @property
    def content(self) -> bytes:
        """The ``.pbit`` file."""
        network: Any = self.network
        return bytes(network[operator.DIGEST_BYTES :].numpy())

    def forward(self, *tensors: Any) -> Any:
        """Run the network.

        Args:
            *tensors: what the original module takes, any batch, on the CPU. Maps in channels_last
                and all tensors of other axes are read without a copy if they are contiguous.

        Returns:
            What the original module returns, without gradients; maps are in channels_last.

        Raises:
            InputError: in training mode; if a tensor has another shape or dtype; for NaN.
            DeviceError: if a tensor or the module is not on the CPU.
        """
        if self.training:
            raise InputError(
                "runs in evaluation mode only", where="phonebit.accelerate", hint="call eval()"
            )
        network: Any = self.network
        fits = len(tensors) == len(self.inputs) and network.is_cpu
        for x, form in zip(tensors, self.inputs, strict=False):
            fits = fits and form.fits(x)
        if not fits:
            self._refuse(tensors)
        if any(x.requires_grad for x in tensors):
            tensors = tuple(x.detach() for x in tensors)
        given = torch.ops.phonebit.forward(tensors, network, self.sizes)
        if not self._gives_floats:
            given = [x.to(form.dtype) for x, form in zip(given, self.outputs, strict=True)]
        return given[0] if self.structure is None else pytree.tree_unflatten(given, self.structure)

    def _refuse(self, tensors: Sequence[Any]) -> None:
        if len(tensors) != len(self.inputs):
            raise InputError(
                "wrong number of tensors",
                where="phonebit.accelerate",
                expected=len(self.inputs),
                got=len(tensors),
            )
        for x, form in zip(tensors, self.inputs, strict=True):
            _refuse_tensor(x, form, self.network)

    def extra_repr(self) -> str:
        """What goes in and comes out."""
        sides = (
            ", ".join(f"({_sizes(form)})" for form in forms)
            for forms in (self.inputs, self.outputs)
        )
        return " -> ".join(sides)


class AcceleratedModule(torch.nn.Module):
    """A copy of a module of which parts run on PhoneBit. ``phonebit.accelerate`` makes it.

    Attributes:
        module: the copy, with a ``NetworkModule`` for each of these parts.
        report: what runs on PhoneBit, what does not, and why.
    """

    def __init__(self, module: Any, report: AccelerationReport) -> None:
        super().__init__()
        self.module = module
        self.report = report
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the original module's.

        Raises:
            InputError: in training mode; or as ``NetworkModule``.
            DeviceError: as ``NetworkModule``.
        """
        return self.module(*args, **kwargs)


def _sizes(form: TensorForm) -> str:
    return ", ".join(map(str, ("N", *form.shape)))


def _refuse_tensor(x: Any, form: TensorForm, network: Any) -> None:
    where = f"input '{form.name}'"
    if not isinstance(x, torch.Tensor):
        raise InputError("not a tensor", where=where, got=type(x).__name__)
    for device in (x.device.type, network.device.type):
        if device != "cpu":
            raise DeviceError(
                "PhoneBit computes PyTorch's tensors on the CPU",
                where=where,
                expected="tensor and module on the CPU",
                got=f"tensor on {x.device}, module on {network.device}",
                hint="move them there with .cpu()",
            )
    if x.dtype != form.dtype:
        raise InputError(
            "wrong element type",
            where=where,
            expected=form.dtype,
            got=x.dtype,
            hint=f"convert it with x.to({form.dtype})",
        )
    if x.shape[1:] != form.shape:
        raise InputError(
            "wrong shape",
            where=where,
            expected=f"({_sizes(form)})",
            got=tuple(x.shape),
            hint="a file has fixed shapes: accelerate with an example of this one",
        )
