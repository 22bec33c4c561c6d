"""Enqueue-to-result overhead per layer: what a forward pass costs beside the kernels' own work.

Chains of tiny binary 1x1 convolutions, whose kernels have next to nothing to do, are run end to
end, host to host, with 1 layer and with many; the slope is the overhead of one more layer. Once by
plain enqueueing, once by replaying a command buffer where the device has them.

    python -m benchmarks.gpu_kernels.bench_overhead --device gpu --json out.json
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import write_results
from benchmarks.run_context import opencl_context
from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, TensorType, Window
from phonebit.converter.ops import BinaryConv2D, Input
from phonebit.converter.ops import Elementwise as Sign
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.writer import to_bytes
from phonebit.devices.opencl import opencl_runtime
from phonebit.format.records import DataType

_runtime = opencl_runtime()

CHANNELS = 32


def chain(layers: int) -> Graph:
    """A sign and then ``layers`` convolutions of one pixel."""
    rng = np.random.default_rng(0)
    graph = Graph("chain", [Node("x", Input(), [], value="x")], {}, ["x"], [])
    graph.types["x"] = TensorType((1, 1, CHANNELS), DataType.F32)
    sign = Sign(Epilogue([], np.zeros(CHANNELS, np.float32)))
    graph.nodes.append(Node("c0", sign, ["x"], bits="c0/bits"))
    for i in range(1, layers + 1):
        weights = rng.choice(np.array([-1, 1], np.int8), (CHANNELS, 1, 1, CHANNELS))
        op = BinaryConv2D(weights, Window((1, 1)), 1, 0, Epilogue([], np.zeros(CHANNELS, np.int32)))
        graph.nodes.append(Node(f"c{i}", op, [f"c{i - 1}/bits"], bits=f"c{i}/bits"))
    graph.outputs.append(f"c{layers}/bits")
    graph.types = infer(graph)
    return graph


def forward_us(layers: int, device: str, command_buffer: bool, runs: int) -> tuple[float, bool]:
    """Median time of a forward pass; whether a command buffer was replayed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.pbit"
        path.write_bytes(to_bytes(chain(layers), {}))
        network = _runtime.Network(path, device=device, command_buffer=command_buffer)
    x = [np.ones((1, 1, 1, CHANNELS), np.float32)]
    for _ in range(runs // 5 + 1):
        network.forward(x)
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        network.forward(x)
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times)), bool(network.startup["uses_command_buffer"])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--layers", type=int, default=41, help="of the long chain")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = _runtime.opencl_devices()[int(arguments.device.partition(":")[2] or 0)]
    rows: list[dict[str, Any]] = []
    for command_buffer in (False, True):
        short, _ = forward_us(1, arguments.device, command_buffer, arguments.runs)
        long, replays = forward_us(
            arguments.layers, arguments.device, command_buffer, arguments.runs
        )
        if command_buffer and not replays:
            print("command buffer: the device has none")
            continue
        row = {
            "mode": "command buffer" if command_buffer else "plain enqueue",
            "one_layer_us": short,
            "per_layer_us": (long - short) / (arguments.layers - 1),
        }
        rows.append(row)
        print(
            f"{row['mode']:15s} {short:8.1f} us for one layer, "
            f"{row['per_layer_us']:6.2f} us more for each"
        )
    if arguments.json:
        document = {"device": device.name, "driver": device.driver_version, "runs": arguments.runs}
        document |= opencl_context(arguments.device)
        write_results(arguments.json, {**document, "rows": rows})


if __name__ == "__main__":
    main()
