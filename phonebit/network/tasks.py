"""Whether a network does what it is asked: classify images, or detect what is in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.network.network import Network


def check_classifier(network: Network) -> None:
    """Refuse networks that do not map one image to one vector of class scores.

    Raises:
        InputError: if there are several inputs or outputs, or the output is a map or bits.
    """
    inputs, outputs = network.inputs, network.outputs
    fits = len(inputs) == len(outputs) == 1
    if not fits or outputs[0].shape[:2] != (1, 1) or outputs[0].dtype != "f32":
        raise InputError(
            "this network is no image classifier",
            where=str(network.path),
            expected="one input and one real-valued output without a map",
            got=f"{[info.shape for info in inputs]} -> {[info.shape for info in outputs]}",
            hint="use phonebit.Network.forward with arrays",
        )


def check_detector(network: Network) -> None:
    """Refuse networks that do not map one image to one map of boxes.

    Raises:
        InputError: if there are several inputs or outputs, or the file does not say what boxes the
            output means.
    """
    inputs, outputs = network.inputs, network.outputs
    if len(inputs) != 1 or len(outputs) != 1:
        raise InputError(
            "this network is no detector",
            where=str(network.path),
            expected="one input and one output",
            got=f"{[info.shape for info in inputs]} -> {[info.shape for info in outputs]}",
            hint="use phonebit.Network.forward with arrays",
        )
    if not network.detection:
        raise InputError(
            "the file does not say what boxes the output means",
            where=str(network.path),
            got=f"an output {outputs[0].text} without anchors",
            hint="if it is a detector, convert it again with --detection anchors.toml",
        )


def class_probabilities(network: Network, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities of a classifier's outputs, which are probabilities already, or logits.

    Args:
        network: a classifier.
        scores: (..., classes).

    Returns:
        The same shape: exp(s_i) / sum_j exp(s_j), the maximum taken off first.
    """
    given: NDArray[np.float64] = np.asarray(scores, np.float64)
    if network.layers[-1].kind == "softmax":
        return given
    powers = np.exp(given - given.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float64)


def label_of(labels: Sequence[str], index: int) -> str:
    """Class name, or "class N" where the file has none."""
    return labels[index] if index < len(labels) else f"class {index}"
