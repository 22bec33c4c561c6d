"""Enqueue-to-result overhead per layer: what a forward pass costs beside the kernels' own work.

Chains of tiny binary 1x1 convolutions, whose kernels have next to nothing to do, are run end to
end, host to host, with 1 layer and with many; the slope is the overhead of one more layer. Once by
plain enqueueing, once by replaying a command buffer where the device has them.

    python -m benchmarks.gpu_kernels.bench_overhead --device gpu --json out.json
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import parser_of
from benchmarks.records import write_results
from benchmarks.run_context import opencl_context
from phonebit.converter.convert import convert_graph
from phonebit.devices.opencl import opencl_runtime
from phonebit.models.networks import INPUT_RANGE
from phonebit.models.networks.builder import NetworkBuilder

_runtime = opencl_runtime()

CHANNELS = 32


def chain(layers: int) -> bytes:
    """A sign and then ``layers`` convolutions of one pixel, as a .pbit file."""
    net = NetworkBuilder("chain", "binary")
    x = net.activate("sign", net.picture(1, 1, CHANNELS))
    for i in range(layers):
        x = net.batch_norm(f"norm{i}", net.conv(f"conv{i}", x, CHANNELS, 1))
        x = net.activate(f"bits{i}", x)
    return convert_graph(net.done(x), input_range=INPUT_RANGE, check=False).content


def forward_us(layers: int, device: str, command_buffer: bool, runs: int) -> tuple[float, bool]:
    """Median time of a forward pass; whether a command buffer was replayed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.pbit"
        path.write_bytes(chain(layers))
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
    parser = parser_of(__doc__)
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
