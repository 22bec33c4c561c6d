"""Where the time of a network goes: layers by processor, operations, bytes and live memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from phonebit.converter.cost import tensor_bytes
from phonebit.converter.ir import Graph
from phonebit.converter.reader import read_graph
from phonebit.devices.gpus import APIS
from phonebit.layer_info import PartProfile
from phonebit.network import Network
from phonebit.planner.plan.execution_plan import OutputPart

MAX_REPEATS = 100
"""Of the measurement of single layers."""


@dataclass(frozen=True)
class Span:
    """What a processor does from one time to another.

    Attributes:
        processor: "cpu" or "gpu".
        layer: index among the layers.
        part: "rows 0:10" or the like; "" for the whole layer.
        begin_ms: from the start of the inference.
        end_ms: likewise.
    """

    processor: str
    layer: int
    part: str
    begin_ms: float
    end_ms: float


def profile_network(
    network: Network,
    inputs: Mapping[str, Any],
    *,
    runs: int = 100,
    warmup: int = 10,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Measure a network as a whole and layer by layer.

    Args:
        network: the loaded file.
        inputs: arrays by input name.
        runs: measured inferences; a layer has at most 100.
        warmup: inferences before them.
        progress: called after each tenth of the runs.

    Returns:
        What ``Network.bench`` and ``Network.profile`` give, JSON-ready, and of each layer
        ``bytes`` (inputs, weights and outputs, each once) and ``live_bytes`` (intermediate tensors
        while it runs); ``spans``: who does what when, as ``Span``, put together from layers
        measured one by one.
    """
    result = network.bench(inputs, runs=runs, warmup=warmup, progress=progress)
    repeats = max(1, min(runs, MAX_REPEATS))
    profiles = network.profile(inputs, repeats)
    graph = read_graph(network.path)
    bytes_moved, live = _bytes_moved(network, graph), _live_bytes(network, graph)
    coexec = network.coexec
    alone = coexec.get("is_on_cpu_alone") or coexec.get("is_on_gpu_alone")
    if network.plan_key and not alone:
        spans = plan_spans(network.profile_parts(repeats), _shapes(network, graph))
    else:
        on_gpu = coexec.get("is_on_gpu_alone") or network.isa in APIS
        spans = _spans_in_a_row("gpu" if on_gpu else "cpu", [p.latency_ms for p in profiles])
    batch = result.batch
    return {
        **result.to_dict(),
        "memory": network.memory,
        "coexec": coexec,
        "layers": [
            {**profile.to_dict(), "bytes": moved[0] + moved[1] * batch, "live_bytes": alive}
            for profile, moved, alive in zip(profiles, bytes_moved, live, strict=True)
        ],
        "spans": [asdict(span) for span in spans],
    }


def _shapes(network: Network, graph: Graph) -> list[tuple[int, int, int]]:
    return [graph.types[layer.outputs[0]].shape for layer in network.layers]


def _bytes_moved(network: Network, graph: Graph) -> list[tuple[int, int]]:
    """Of each layer: bytes of constants, and of inputs and outputs of one image."""
    return [
        (
            layer.weight_bytes,
            sum(tensor_bytes(graph.types[name]) for name in {*layer.inputs, *layer.outputs}),
        )
        for layer in network.layers
    ]


def _live_bytes(network: Network, graph: Graph) -> list[int]:
    """Of each layer: bytes of one image's tensors that are between the first and the last use."""
    ends = {info.name for info in (*network.inputs, *network.outputs)}  # in the caller's memory
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, layer in enumerate(network.layers):
        for name in (*layer.inputs, *layer.outputs):
            first.setdefault(name, index)
            last[name] = index
    changes = [0] * (len(network.layers) + 1)
    for name in first.keys() - ends:
        size = tensor_bytes(graph.types[name])
        changes[first[name]] += size
        changes[last[name] + 1] -= size
    return list(accumulate(changes[:-1]))


def _spans_in_a_row(processor: str, latencies_ms: Sequence[float]) -> list[Span]:
    spans, now = [], 0.0
    for index, latency_ms in enumerate(latencies_ms):
        spans.append(Span(processor, index, "", now, now + latency_ms))
        now += latency_ms
    return spans


def plan_spans(parts: Sequence[PartProfile], shapes: Sequence[tuple[int, int, int]]) -> list[Span]:
    """In a stage each processor does its parts in a row; the next one begins when both are done."""
    spans: list[Span] = []
    stage, begin, now = 0, 0.0, {"cpu": 0.0, "gpu": 0.0}
    for one in parts:
        if one.stage != stage:
            stage, begin = one.stage, max(now.values())
            now = dict.fromkeys(now, begin)
        start = now[one.processor]
        now[one.processor] = start + one.latency_ms
        text = OutputPart(*one.part).text(shapes[one.layer])
        spans.append(Span(one.processor, one.layer, text, start, now[one.processor]))
    return spans
