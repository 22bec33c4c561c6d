"""PyTorch's operators on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class OnArrays:
    """An operator of PyTorch that takes and returns arrays in place of tensors."""

    operator: Callable[..., Any]

    def __call__(self, /, **arguments: Any) -> Any:
        """Applies the operator; arrays may be inside of lists."""
        import torch

        with torch.no_grad():
            return _mapped(self.operator(**{n: _mapped(a) for n, a in arguments.items()}))

    def __str__(self) -> str:
        return str(self.operator)


def to_array(tensor: Any) -> NDArray[Any]:
    """A tensor as an array of the same memory; NumPy has no bfloat16, which becomes float32."""
    tensor = tensor.detach()
    array: NDArray[Any] = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
    return array


def _to_tensor(value: NDArray[Any] | np.generic) -> Any:
    import torch

    array: NDArray[Any] = np.asarray(value)  # a number of NumPy's is no array
    is_plain = array.flags.writeable and all(step >= 0 for step in array.strides)
    return torch.from_numpy(array if is_plain else array.copy())


def _mapped(value: Any) -> Any:
    """Arrays as tensors and tensors as arrays."""
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item) for item in value)
    if isinstance(value, np.ndarray | np.generic):
        return _to_tensor(value)
    return to_array(value) if hasattr(value, "numel") else value
