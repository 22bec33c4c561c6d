"""The weights that the classes of Keras have, in the order in which Keras creates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from phonebit.converter.importers.keras.config import LayerSpec

Config = Mapping[str, Any]
Roles = Callable[[Config], list[str]]
RECURRENT: Final = ("LSTM", "GRU", "SimpleRNN")
CELL: Final = "cell"
"""The group in which a .keras archive has the weights of a recurrent layer."""
DIRECTIONS: Final = ("forward_layer", "backward_layer")
"""The groups of the two layers of a Bidirectional."""


def cell_roles(config: Config, group: str = CELL) -> list[str]:
    """The weights of a recurrent layer, each with the group in which an archive has it."""
    biases = ["bias"] if config.get("use_bias", True) else []
    return [f"{group}/{name}" for name in ("kernel", "recurrent_kernel", *biases)]


def wrapped(config: Config) -> list[tuple[str, str, Config]]:
    """(group, class, configuration) of the two layers of a Bidirectional."""
    forward = config.get("layer") or {}
    inner = forward.get("config") or {}
    flipped = {**inner, "go_backwards": not inner.get("go_backwards", False)}
    backward = config.get("backward_layer") or {**forward, "config": flipped}
    return [
        (group, str(each.get("class_name")).split(">")[-1], each.get("config") or {})
        for group, each in zip(DIRECTIONS, (forward, backward), strict=True)
    ]


def _bidirectional(config: Config) -> list[str]:
    return [
        role for group, _, inner in wrapped(config) for role in cell_roles(inner, f"{group}/{CELL}")
    ]


def _with_bias(*names: str) -> Roles:
    return lambda config: [*names, *(["bias"] if config.get("use_bias", True) else [])]


def _scaled(*names: str) -> Roles:
    """A scale and a shift, each of which may be left out, in front of others."""
    flags = {"gamma": "scale", "beta": "center"}
    return lambda config: [
        *(name for name, flag in flags.items() if config.get(flag, True)),
        *names,
    ]


def _with_statistics(kernel: str, config: Config) -> list[str]:
    """QKeras's folded layers, whose batch normalisation is a layer in them."""
    trained = _scaled()(config)
    own = [kernel, *(["bias"] if config.get("use_bias", True) else [])]
    norm = [f"batchnorm/{role}" for role in (*trained, "moving_mean", "moving_variance")]
    return [*own, *norm[: len(trained)], "iteration", *norm[len(trained) :]]


STATISTICS: Final = ("moving_mean", "moving_variance", "mean", "variance", "count", "iteration")
"""Weights that are not trained."""
ROLES: Final[dict[str, Roles]] = {
    **dict.fromkeys(("Dense", "Conv1D", "Conv2D", "Conv3D"), _with_bias("kernel")),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose"), _with_bias("kernel")),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _with_bias("depthwise_kernel")),
    **dict.fromkeys(
        ("SeparableConv1D", "SeparableConv2D"), _with_bias("depthwise_kernel", "pointwise_kernel")
    ),
    **dict.fromkeys(
        ("BatchNormalization", "SyncBatchNormalization"), _scaled("moving_mean", "moving_variance")
    ),
    **dict.fromkeys(("LayerNormalization", "GroupNormalization"), _scaled()),
    "Conv2DBatchnorm": lambda config: _with_statistics("kernel", config),
    "DepthwiseConv2DBatchnorm": lambda config: _with_statistics("depthwise_kernel", config),
    "Normalization": lambda config: (
        ["mean", "variance", "count"] if config.get("mean") is None else []
    ),
    "Embedding": lambda _: ["embeddings"],
    "PReLU": lambda _: ["alpha"],
    **dict.fromkeys(RECURRENT, cell_roles),
    "Bidirectional": _bidirectional,
}
"""Weights of each class in the order in which Keras creates them, by its configuration."""


def plain_name(class_name: str) -> str:
    """Keras's class of Larq's and QKeras's layers."""
    for prefix in ("Quant", "Q"):
        name = class_name.removeprefix(prefix)
        if name in ROLES:
            return name
    return class_name


def weight_roles(layer: LayerSpec) -> list[tuple[str, bool]]:
    """(role, trainable) of a layer's weights in the order in which Keras creates them."""
    names = ROLES.get(plain_name(layer.class_name))
    found = [] if names is None else names(layer.config)
    trainable = layer.config.get("trainable", True) is not False
    return [(name, trainable and name.rpartition("/")[2] not in STATISTICS) for name in found]
