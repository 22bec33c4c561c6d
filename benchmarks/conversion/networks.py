"""The networks of the tables: larq-zoo's and the PyTorch ones of ``tests/support/torch_networks``.

A network comes with random weights and statistics as training would leave them; nothing is
downloaded. Frameworks are imported only for the network that is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.conversion.papers import LARQ_ZOO
from support.torch_networks import NETWORKS as PYTORCH
from support.torch_networks import TASKS, channels_last

SEED: Final = 1
SIZE: Final = 224
CALIBRATION: Final = 8
"""Pictures that batch statistics are taken from; of one, dense layers would have no variance."""


@dataclass(frozen=True)
class Subject:
    """A network to convert: a Keras model or PyTorch module, inputs (N, H, W, C), float32."""

    model: Any
    options: dict[str, Any]
    """Of ``phonebit.convert``."""
    inputs: NDArray[np.float32]


def build(name: str, count: int) -> Subject:
    """A network with random weights and so many pictures to compare it on."""
    if name not in LARQ_ZOO:
        entry = {**PYTORCH, **TASKS}[name]
        module = entry.build("random", SEED, small=False)
        inputs = entry.inputs("random", count, SEED + 1, small=False)
        return Subject(module, {"input_shape": (1, *inputs.shape[1:])}, channels_last(inputs))
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import larq_zoo

    from support.larq_networks import make_random, real_pictures

    folder = larq_zoo.sota if name.startswith("QuickNet") else larq_zoo.literature
    model = getattr(folder, name)(input_shape=(SIZE, SIZE, 3), weights=None)
    make_random(model, real_pictures(CALIBRATION, SIZE, SEED), SEED)
    return Subject(model, {}, real_pictures(count, SIZE, SEED + 1))
