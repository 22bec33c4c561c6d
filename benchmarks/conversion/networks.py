"""The networks of the tables: larq-zoo's and the PyTorch ones of ``tests/support/torch_networks``.

A network comes with random weights and statistics as training would leave them; nothing is
downloaded. Frameworks are imported only for the network that is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.conversion.papers import LARQ_ZOO
from support.torch_networks import NETWORKS as PYTORCH
from support.torch_networks import TASKS, channels_last

SEED: Final = 1
SIZE: Final = 224
CALIBRATION: Final = 8
"""Pictures that batch statistics are taken from; of one, dense layers would have no variance."""

Framework = Literal["Larq", "PyTorch"]


@dataclass(frozen=True)
class Subject:
    """A network to convert.

    Attributes:
        model: Keras model or PyTorch module in eval mode.
        options: Keyword arguments of ``phonebit.convert`` that it needs.
        inputs: (N, H, W, C), float32.
    """

    model: Any
    options: dict[str, Any]
    inputs: NDArray[np.float32]


def framework_of(name: str) -> Framework:
    """Who trains the network."""
    return "Larq" if name in LARQ_ZOO else "PyTorch"


def build(name: str, count: int) -> Subject:
    """A network with random weights and pictures to compare it on.

    Args:
        name: One of ``LARQ_ZOO``, ``PYTORCH`` or ``TASKS``.
        count: Number of pictures.
    """
    return _zoo(name, count) if name in LARQ_ZOO else _torch(name, count)


def _zoo(name: str, count: int) -> Subject:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import larq_zoo

    from support.larq_networks import make_random, real_pictures

    module = larq_zoo.sota if name.startswith("QuickNet") else larq_zoo.literature
    model = getattr(module, name)(input_shape=(SIZE, SIZE, 3), weights=None)
    make_random(model, real_pictures(CALIBRATION, SIZE, SEED), SEED)
    return Subject(model, {}, real_pictures(count, SIZE, SEED + 1))


def _torch(name: str, count: int) -> Subject:
    entry = {**PYTORCH, **TASKS}[name]
    module = entry.build("random", SEED, small=False)
    inputs = entry.inputs("random", count, SEED + 1, small=False)
    return Subject(module, {"input_shape": (1, *inputs.shape[1:])}, channels_last(inputs))
