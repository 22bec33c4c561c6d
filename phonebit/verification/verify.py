"""The verification itself: source and file side by side, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.reader import read_graph
from phonebit.devices.environment import environment
from phonebit.errors import InputError
from phonebit.floating_point import rounds_by_default
from phonebit.network import Network
from phonebit.network.input_checks import (
    ArrayLike,
    arrays_by_name,
    as_numpy,
    check_finite,
    check_inputs,
)
from phonebit.verification.constants import check_constants
from phonebit.verification.default_inputs import default_inputs
from phonebit.verification.default_kernels import DefaultKernels
from phonebit.verification.end_to_end import EndToEndChecker
from phonebit.verification.layers import LayerChecker
from phonebit.verification.layout import Layout, to_nhwc
from phonebit.verification.report import DeviceCheck, VerificationReport
from phonebit.verification.source import check_belonging, open_source, source_inputs, traced_as
from phonebit.verification.source_trace import Array, Source
from phonebit.verification.stored_weights import StoredWeights

if TYPE_CHECKING:
    from phonebit.devices.loading import Precision
    from phonebit.devices.target import DeviceLike

BATCH = 8
"""Samples at a time: every intermediate value of both networks is held for these."""


def steps(count: int) -> int:
    """Steps that ``verify`` takes, and tells ``progress`` of, for this many inputs."""
    return 1 + -(-count // BATCH)


@rounds_by_default
def verify(
    source: str | os.PathLike[str] | Any,
    file: str | os.PathLike[str] | Network | Sequence[Network],
    inputs: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    options: ImportOptions | None = None,
    layout: Layout | None = None,
    seed: int = 0,
    tolerance: float = 1e-5,
    framework: bool = True,
    device: DeviceLike = "auto",
    precision: Precision = "exact",
    max_memory_bytes: int = 0,
    max_work: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> VerificationReport:
    """Compare a ``.pbit`` file with the checkpoint that it was made from.

    Args:
        source: the checkpoint's path; a live Keras model, PyTorch module or exported program; or
            a source that ``open_source`` has opened.
        file: the ``.pbit`` file; or a network loaded from it; or several, the same file on several
            devices, which must then also give the same bits as each other.
        inputs: for the file's inputs, as ``Network.forward`` takes them; None: 8, see
            ``default_inputs``.
        options: what an unopened source leaves open, as for the conversion; the input shape of a
            PyTorch module is the file's unless given.
        layout: order of the axes of ``inputs``: "nhwc", or "nchw"; None: as their shapes say, and
            (N, channels, height, width) only if the source is PyTorch's or ONNX's.
        seed: of the random ones.
        tolerance: allowed difference of float values, as a share of the layer's largest value.
        framework: use the training framework's activations where it is installed; else, or
            otherwise, the reference interpreter's.
        device: where to load a file, as for ``Network.load``.
        precision: with which to load a file, or with which networks were loaded, as for
            ``Network.load``. If it is not "exact", float layers may differ by 0.1 of their
            largest value, bits where what they are the sign of is below that; the report says by
            how much they do, and what whole inferences make of it.
        max_memory_bytes: limit of a file that is loaded, as for ``Network.load``.
        max_work: another.
        progress: called with a text before each step.

    Returns:
        For each device one check a layer and one end to end. A difference is a result, not an
        exception.

    Raises:
        ConversionError: if the checkpoint cannot be imported.
        ModelFormatError: if the file is not sound.
        DeviceError: if the device is absent.
        InputError: if the inputs do not fit the file, or the networks are not of one file.
        VerificationError: if checkpoint and file do not belong together at all.
    """
    if isinstance(file, str | os.PathLike):
        file = Network.load(
            file, device, precision=precision, max_memory_bytes=max_memory_bytes, max_work=max_work
        )
    networks = _one_file([file] if isinstance(file, Network) else list(file))
    network = networks[0]
    say = progress or (lambda _text: None)
    if isinstance(source, Source):
        origin = source
    else:
        options = traced_as(source, options or ImportOptions(), network)
        origin = open_source(source, framework, options)
    check_belonging(origin, network)
    if inputs is None:
        inputs, layout = default_inputs(network, seed=seed), "nhwc"
    arrays = _arrays(inputs, network, layout, origin)
    graph = read_graph(network.path)
    weights = StoredWeights(graph, origin.graph)
    is_lower = precision != "exact"
    say("comparing constants")
    constants = check_constants(graph, origin.graph)
    layers = LayerChecker(networks, graph, origin.graph, weights, tolerance, is_lower)
    layers.mark_constants(constants.differing)
    wholes = [EndToEndChecker(one, graph, tolerance, precision) for one in networks]
    default_kernels = DefaultKernels(origin.graph.outputs)
    count = len(next(iter(arrays.values())))
    for begin in range(0, count, BATCH):
        say(f"inputs {begin} to {min(begin + BATCH, count) - 1} of {count}")
        batch = {name: array[begin : begin + BATCH] for name, array in arrays.items()}
        read = source_inputs(origin.graph, network, batch)
        trace = origin.trace(read)
        if origin.default_kernels is not None:
            default_kernels.add(trace.values, origin.default_kernels(read))
        layers.check_batch(batch, trace, begin)
        first: dict[str, Array] | None = None
        rounded = weights.whole_trace(trace)
        for whole in wholes:
            outputs = whole.check_batch(batch, rounded, begin, first, trace)
            first = first or outputs
    devices = [
        DeviceCheck(one.device, checks, whole.check)
        for one, checks, whole in zip(networks, layers.checks, wholes, strict=True)
    ]
    return VerificationReport(
        source=origin.name,
        file=str(network.path),
        framework=origin.trained_with,
        reference=origin.reference,
        reason=origin.reason,
        samples=count,
        precision=precision,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        devices=devices,
        constants=constants,
        environment=_environment(devices),
        default_kernels=default_kernels if origin.default_kernels is not None else None,
    )


def _environment(devices: Sequence[DeviceCheck]) -> dict[str, Any]:
    """The machine, and the driver of a GPU that has a number; pyopencl's objects have none."""
    found: dict[str, Any] = {}
    for device in devices:
        name = device.short_name
        found |= environment(name if ":" in name else "cpu")
    return found


def _one_file(networks: list[Network]) -> list[Network]:
    paths = {str(network.path) for network in networks}
    if len(paths) != 1:
        raise InputError(
            "not one file on several devices",
            where="file",
            expected="networks that were loaded from the same file",
            got=", ".join(sorted(paths)) or "none",
        )
    return networks


def _arrays(
    inputs: ArrayLike | Mapping[str, ArrayLike],
    network: Network,
    layout: Layout | None,
    origin: Source,
) -> dict[str, Array]:
    """The inputs, checked, (N, height, width, channels) by name."""
    named = arrays_by_name(inputs, network.inputs)
    arrays = {info.name: as_numpy(named[info.name], info) for info in network.inputs}
    ordered = to_nhwc(arrays, network.inputs, layout, origin.trained_with in ("PyTorch", "ONNX"))
    checked = check_inputs(ordered, network.inputs)
    check_finite(checked, network.inputs)
    return {info.name: array for info, array in zip(network.inputs, checked, strict=True)}
