"""Times the GPU kernels layer by layer with the device's own clock (events), through the engine.

Each layer is a network of its own, measured with the kernel that the tuning table gives it
(``phonebit tune`` measures the others). Speed is 2 x MACs / time in TOPS; on devices whose popcount
rate is known also as a share of what the popcount units can do: 64 operations a counted word.

    python -m benchmarks.gpu_kernels.bench_gpu_kernels --device gpu --json out.json
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.command_line import parser_of
from benchmarks.records import write_results
from benchmarks.run_context import opencl_context
from phonebit.converter.convert import convert_graph
from phonebit.devices.opencl import opencl_runtime
from phonebit.format.records import DataType
from phonebit.models.networks import INPUT_RANGE
from phonebit.models.networks.builder import NetworkBuilder

_runtime = opencl_runtime()

POPCOUNTS_PER_CLOCK = {"nvidia": 16}
"""32-bit population counts that a compute unit does in a cycle (CUDA C++ Programming Guide,
arithmetic instructions, compute capability 9.0)."""


@dataclass(frozen=True)
class Layer:
    """One convolution with integer thresholds, square map and window, padded to keep the map."""

    name: str
    size: int
    channels: int
    filters: int
    kernel: int = 3
    stride: int = 1
    dtype: DataType = DataType.BIT

    @property
    def out_size(self) -> int:
        """Height and width of the output map."""
        if self.is_dense:
            return 1
        return (self.size - 1) // self.stride + 1

    @property
    def is_dense(self) -> bool:
        """Whether the window is the whole map."""
        return self.kernel == self.size

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one image."""
        return self.out_size**2 * self.filters * self.kernel**2 * self.channels


LAYERS = (
    Layer("3x3 224x224 256->256", 224, 256, 256),
    Layer("3x3 56x56 256->256", 56, 256, 256),
    Layer("3x3 56x56 64->64", 56, 64, 64),
    Layer("3x3 28x28 128->128", 28, 128, 128),
    Layer("3x3 14x14 256->256", 14, 256, 256),
    Layer("3x3 7x7 512->512", 7, 512, 512),
    Layer("3x3s2 56x56 64->128", 56, 64, 128, 3, 2),
    Layer("1x1 56x56 256->256", 56, 256, 256, 1),
    Layer("5x5 27x27 96->256", 27, 96, 256, 5),
    Layer("3x3 13x13 1024->1024", 13, 1024, 1024),
    Layer("dense 7x7x512->4096", 7, 512, 4096, 7),
    Layer("dense 4096->4096", 1, 4096, 4096, 1),
    Layer("u8 3x3 224x224 3->64", 224, 3, 64, 3, 1, DataType.U8),
    Layer("u8 7x7s2 224x224 3->64", 224, 3, 64, 7, 2, DataType.U8),
)


def content_of(layer: Layer) -> bytes:
    """The layer as a .pbit file; binary ones get their bits from the signs of a float input."""
    is_u8 = layer.dtype == DataType.U8
    net = NetworkBuilder(layer.name, "binary")
    x = net.picture(layer.size, layer.size, layer.channels)
    x = x if is_u8 else net.activate("sign", x)
    if layer.is_dense:
        x = net.dense("layer", x, layer.filters)
    else:
        pad = (layer.kernel - 1) // 2
        x = net.conv("layer", x, layer.filters, layer.kernel, stride=layer.stride, padding=pad)
    graph = net.done(net.activate("bits", net.batch_norm("norm", x)))
    dtype = "u8" if is_u8 else "f32"
    return convert_graph(graph, input_dtype=dtype, input_range=INPUT_RANGE, check=False).content


def popcount_peak_tops(device: Any) -> float | None:
    """TOPS of the popcount units alone, where their rate is known."""
    rate = POPCOUNTS_PER_CLOCK.get(device.vendor)
    if rate is None:
        return None
    return float(device.compute_units * rate * device.clock_mhz * 1e6 * 64 / 1e12)


def measure(layer: Layer, arguments: argparse.Namespace) -> dict[str, Any]:
    """A layer's row, by the kernel that serves it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.pbit"
        path.write_bytes(content_of(layer))
        network = _runtime.Network(path, device=arguments.device)
    index = len(network.layers) - 1
    choice = network.candidates(index)[0]
    time_ms, is_equal = network.measure_choice(index, choice, arguments.batch, arguments.repeats)
    return {
        "layer": layer.name,
        "choice": choice,
        "time_us": 1e3 * time_ms,
        "tops": 2 * arguments.batch * layer.macs / (time_ms * 1e9),
        "equal": is_equal,
    }


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="gpu", help="gpu or gpu:<index>")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    devices = _runtime.opencl_devices()
    if not devices:
        raise SystemExit(_runtime.opencl_error())
    device = devices[int(arguments.device.partition(":")[2] or 0)]
    peak = popcount_peak_tops(device)
    print(
        f"{device.name}, driver {device.driver_version}, popcount peak {peak and round(peak)} TOPS"
    )
    results = []
    for layer in LAYERS:
        row = measure(layer, arguments)
        share = "" if peak is None else f"{100 * row['tops'] / peak:5.0f} %"
        wrong = "" if row["equal"] else "  WRONG"
        print(
            f"{layer.name:26s} {row['time_us']:9.1f} us {row['tops']:7.1f} TOPS {share}"
            f"  {row['choice']}{wrong}",
            flush=True,
        )
        results.append(row)
    if arguments.json:
        document = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": device.name,
            "driver": device.driver_version,
            "popcount_peak_tops": peak,
            "batch": arguments.batch,
            "repeats": arguments.repeats,
            **opencl_context(arguments.device),
            "rows": results,
        }
        write_results(arguments.json, document)


if __name__ == "__main__":
    main()
