"""Figure 5 of the paper: what fusion and bits bring in each of YOLOv2-Tiny's nine layers.

    python -m benchmarks.networks.per_layer --peer-python /path/to/peers/bin/python
    python -m benchmarks.networks.per_layer --device gpu

Engines take turns: the binary network fused (what PhoneBit runs), the same unfused (unfused.py; its
tensors must be equal to the fused ones, bit for bit), the float twin in PhoneBit, and on the CPU
the float twin in ONNX Runtime and OpenVINO, where --peer-python has them and PyTorch and onnxscript
are installed here. A layer is a convolution with the batch normalization, the sign and the pool
after it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import parser_of
from benchmarks.networks.document import LAYERS, per_layer_table
from benchmarks.networks.sizes import float_twin
from benchmarks.networks.unfused import unfused_network
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.records import RESULTS, run_context, write_results
from benchmarks.rounds import Times, take_turns
from phonebit import Network
from phonebit.errors import VerificationError
from phonebit.models.networks import NETWORKS, build
from phonebit.network.random_inputs import random_inputs

NETWORK: Final = "yolov2_tiny"
FORMS: Final = ("fused", "unfused", "float")
PEER_ENGINES: Final = {"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}
PEER_TIMEOUT_S: Final = 120
OTHER: Final = "other"
"""Ops of no layer: what an engine does to the input, or between its layouts."""
OF_LAYER: Final = re.compile(r"\b(?:conv|bn|sign|pool)(\d)(?!\d)")
UNPACKING: Final = "/float"
"""How the name of an op ends that turns bits into floats for the full-precision layer after it."""


def layer_of(names: list[str]) -> list[str]:
    """The layer of each op, in execution order, by the numbers in their names."""
    layers: list[str] = []
    for name in reversed(names):
        found = OF_LAYER.search(name)
        own = f"conv{found[1]}" if found and f"conv{found[1]}" in LAYERS else OTHER
        if name.endswith(UNPACKING) and layers:
            own = layers[-1]
        layers.append(own)
    return layers[::-1]


def by_layer(times: Iterable[tuple[str, float]]) -> Times:
    """Milliseconds of each layer, and of the rest if there is any, from those of ops in order."""
    ops = list(times)
    sums = dict.fromkeys(LAYERS, 0.0)
    for layer, (_, milliseconds) in zip(layer_of([name for name, _ in ops]), ops, strict=True):
        sums[layer] = sums.get(layer, 0.0) + milliseconds
    return sums


def check_equal(
    one: Network, other: Network, image: dict[str, NDArray[Any]], only_bits: bool = False
) -> int:
    """How many tensors both networks have, all equal: the result among them, or those of bits."""
    ours, others = one.activations(image), other.activations(image)
    shared = [name for name in ours if name in others]
    assert {info.name for info in one.outputs} <= set(shared)
    if only_bits:
        shared = [name for name in shared if ours[name].dtype == np.int8]
    for name in shared:
        if not np.array_equal(ours[name], others[name]):
            count = int(np.sum(ours[name] != others[name]))
            raise VerificationError(
                "the other network computes something else",
                where=name,
                expected="equal elements",
                got=f"{count} of {ours[name].size} differ",
            )
    return len(shared)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All of it: the document that is written."""
    files = {form: folder / f"{form}.pbit" for form in FORMS}
    build(NETWORK, files["fused"])
    files["unfused"].write_bytes(unfused_network(NETWORK))
    files["float"].write_bytes(float_twin(NETWORK))
    networks = {
        form: Network.load(file, options.device, threads=options.threads)
        for form, file in files.items()
    }
    levels = random_inputs(networks["fused"].inputs, 1)
    name = networks["float"].inputs[0].name
    reals = {name: (levels[name] * np.float32(2 / 255) - 1).astype(np.float32)}
    images = {"fused": levels, "unfused": levels, "float": reals}
    equal = check_equal(networks["fused"], networks["unfused"], levels)

    def layer_times(form: str) -> Times:
        ops = networks[form].profile(images[form], options.repeats)
        return by_layer((op.name, op.latency_ms) for op in ops)

    candidates = {form: partial(layer_times, form) for form in FORMS}
    peers, failures = _start_peers(options, folder, reals[name])
    for engine, peer in peers.items():
        candidates[engine] = partial(peer_times, peer, options.repeats)
    try:
        rounds = take_turns(candidates, options.rounds)
    finally:
        for peer in peers.values():
            peer.stop()
    titles = dict.fromkeys(FORMS, "PhoneBit")
    for engine, peer in peers.items():
        titles[engine] = f"{PEER_ENGINES[engine]} {peer.ready['version'].partition('-')[0]}"
    fused = networks["fused"]
    return {
        "context": run_context(options.device),
        "network": NETWORK,
        "device": fused.device,
        "isa": fused.isa,
        "threads": fused.threads,
        "repeats": options.repeats,
        **rounds.describe(),
        "equal_tensors": equal,
        "engines": {
            engine: {"title": titles[engine], "layers": rounds.spread(engine)}
            for engine in candidates
        },
        "failures": failures,
    }


def peer_times(peer: WorkerProcess, repeats: int) -> Times:
    """The same of a peer, summed over the layer's nodes."""
    passes = [by_layer(peer.ask("nodes", PEER_TIMEOUT_S)["ms"]) for _ in range(repeats)]
    return {layer: median(one[layer] for one in passes) for layer in passes[0]}


def _start_peers(
    options: argparse.Namespace, folder: Path, image: NDArray[np.float32]
) -> tuple[dict[str, WorkerProcess], dict[str, str]]:
    """The engines that run, and of the others the reason why not."""
    if not str(options.device).startswith("cpu"):
        return {}, dict.fromkeys(PEER_ENGINES, "its times of single nodes are of the CPU")
    model, data = folder / "float.onnx", folder / "image.npy"
    task = {"model": str(model), "image": str(data), "threads": options.threads}
    task["variant"] = "nodes"
    try:
        from benchmarks.peers.formats.torch_format import save_onnx

        save_onnx(NETWORKS[NETWORK]("float"), model)
    except ImportError as error:
        return {}, dict.fromkeys(PEER_ENGINES, f"no ONNX file of the float twin: {error}")
    np.save(data, image)
    peers, failures = {}, {}
    for engine in PEER_ENGINES:
        module = f"benchmarks.peers.workers.{engine}_worker"
        try:
            peer = WorkerProcess(module, task, PEER_TIMEOUT_S, options.peer_python)
            peer.ask("batch 1", PEER_TIMEOUT_S)
            peers[engine] = peer
        except WorkerError as error:
            failures[engine] = str(error)
    return peers, failures


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu (default), gpu or gpu:N")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU, for all engines")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5, help="passes of a turn; medians count")
    parser.add_argument("--peer-python", default=sys.executable, help="has openvino, onnxruntime")
    parser.add_argument("--json", type=Path, help="instead of benchmarks/results/per_layer_*.json")
    options = parser.parse_args()
    kind = "cpu" if options.device.startswith("cpu") else "gpu"
    with tempfile.TemporaryDirectory() as folder:
        document = measure(options, Path(folder))
    write_results(options.json or RESULTS / f"per_layer_{kind}.json", document)
    print(per_layer_table(document))


if __name__ == "__main__":
    main()
