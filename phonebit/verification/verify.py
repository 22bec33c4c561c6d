"""The verification itself: source and file side by side, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from phonebit.converter.reader import read_graph
from phonebit.input_checks import check_inputs
from phonebit.network import Network
from phonebit.random_inputs import random_inputs
from phonebit.verification.end_to_end import EndToEndChecker
from phonebit.verification.layers import LayerChecker
from phonebit.verification.report import VerificationReport
from phonebit.verification.source import check_belonging, open_source, source_inputs
from phonebit.verification.source_trace import Array

if TYPE_CHECKING:
    from phonebit.target import DeviceLike

BATCH = 8
"""Samples at a time: every intermediate value of both networks is held for these."""
DEFAULT_SAMPLES = 8


def batches(count: int) -> int:
    """Steps that ``verify`` takes, and tells ``progress`` of, for this many inputs."""
    return -(-count // BATCH)


def verify(
    source: str | os.PathLike[str] | Any,
    file: str | os.PathLike[str] | Network,
    inputs: Array | Mapping[str, Array] | None = None,
    *,
    seed: int = 0,
    tolerance: float = 1e-5,
    framework: bool = True,
    device: DeviceLike = "auto",
    progress: Callable[[str], None] | None = None,
) -> VerificationReport:
    """Compare a ``.pbit`` file with the checkpoint that it was made from.

    Args:
        source: the checkpoint's path, or a live Keras model.
        file: the ``.pbit`` file, or a network loaded from it.
        inputs: for the file's inputs, as ``Network.forward`` takes them; None: 8 random ones.
        seed: of the random ones.
        tolerance: allowed difference of real values, as a share of the layer's largest value.
        framework: use the training framework's activations where it is installed; else, or
            otherwise, the reference interpreter's.
        device: where to load a file, as for ``Network.load``.
        progress: called with a text before each step.

    Returns:
        One check a layer and one end to end. A difference is a result, not an exception.

    Raises:
        ConversionError: if the checkpoint cannot be imported.
        ModelFormatError: if the file is not sound.
        DeviceError: if the device is absent.
        InputError: if the inputs do not fit the file.
        VerificationError: if checkpoint and file do not belong together at all.
    """
    network = file if isinstance(file, Network) else Network.load(file, device)
    say = progress or (lambda _text: None)
    origin = open_source(source, framework)
    graph = read_graph(network.path)
    check_belonging(origin, network)
    checked = check_inputs(
        random_inputs(network.inputs, DEFAULT_SAMPLES, seed) if inputs is None else inputs,
        network.inputs,
    )
    arrays = {info.name: array for info, array in zip(network.inputs, checked, strict=True)}
    layers = LayerChecker(network, graph, origin.graph, tolerance)
    whole = EndToEndChecker(network, tolerance)
    count = len(checked[0])
    for begin in range(0, count, BATCH):
        say(f"inputs {begin} to {min(begin + BATCH, count) - 1} of {count}")
        batch = {name: array[begin : begin + BATCH] for name, array in arrays.items()}
        trace = origin.trace(source_inputs(origin.graph, network, batch))
        layers.check_batch(batch, trace, begin)
        whole.check_batch(batch, trace, begin)
    return VerificationReport(
        origin.name,
        str(network.path),
        origin.reference,
        origin.reason,
        count,
        layers.checks,
        whole.check,
    )
