"""Enqueue-to-result overhead per layer: what a forward pass costs beside the kernels' own work.

Chains of tiny binary 1x1 convolutions, whose kernels have next to nothing to do, are run end to
end, host to host, with 1 layer and with many; the slope is the overhead of one more layer. Once by
plain enqueueing, once by replaying a command buffer where the device has them.

    python -m benchmarks.gpu_kernels.bench_overhead --device gpu --json out.json
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from timeit import repeat

import numpy as np

from benchmarks.command_line import parser_of
from benchmarks.gpu_kernels.document import overhead_table
from benchmarks.records import write_results
from benchmarks.run_context import run_context
from phonebit.converter.convert import convert_graph
from phonebit.devices.opencl import opencl_device, opencl_runtime
from phonebit.models.networks import INPUT_RANGE
from phonebit.models.networks.builder import NetworkBuilder

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
        network = opencl_runtime().Network(path, device=device, command_buffer=command_buffer)
    x = [np.ones((1, 1, 1, CHANNELS), np.float32)]
    times = repeat(lambda: network.forward(x), number=1, repeat=runs + runs // 5 + 1)
    return 1e6 * float(np.median(times[-runs:])), bool(network.startup["uses_command_buffer"])


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--layers", type=int, default=41, help="of the long chain")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for mode, command_buffer in (("plain enqueue", False), ("command buffer", True)):
        (short, _), (long, replays) = (
            forward_us(layers, options.device, command_buffer, options.runs)
            for layers in (1, options.layers)
        )
        if replays or not command_buffer:  # else the device has none
            per_layer = (long - short) / (options.layers - 1)
            rows.append({"mode": mode, "one_layer_us": short, "per_layer_us": per_layer})
    device = opencl_device(options.device)
    document = {"device": device.name, "driver": device.driver_version, "runs": options.runs}
    document |= {"context": run_context(options.device), "rows": rows}
    print(overhead_table([document]))
    if options.json:
        write_results(options.json, document)


if __name__ == "__main__":
    main()
