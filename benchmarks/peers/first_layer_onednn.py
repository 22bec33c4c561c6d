"""First layers, u8 pixels times -1/+1 weights, beside oneDNN's int8 convolution, one thread.

PhoneBit compares the sums with thresholds and writes 64 bits a pixel; oneDNN rescales them and
writes 64 bytes. Both do what their next layer needs. oneDNN runs through torch's quantized
convolution and reports the time of the bare primitive itself (ONEDNN_VERBOSE). The two take turns,
so that a change of the machine's load hits both.

    pip install torch numpy
    python -m benchmarks.peers.first_layer_onednn BUILD/benchmarks/cpu_kernels/phonebit_value_bench
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

# Name, kernel, stride, padding; 224 x 224 x 3 -> 64 channels.
LAYERS = (("u8 3x3 224", 3, 1, 1), ("u8 7x7s2 224", 7, 2, 3))
# oneDNN's cap on instruction sets (empty: none), and the kernel of ours that uses the same ones.
PAIRS = (("", "u8conv_tiles"), ("AVX512_CORE_VNNI", "u8conv_direct"))
RUNS = 40


def run_onednn() -> None:
    """Runs every layer RUNS times; oneDNN prints a line for each. For a process of its own."""
    import torch

    torch.set_num_threads(1)
    torch.backends.quantized.engine = "onednn"
    for _, kernel, stride, padding in LAYERS:
        pixels = torch.randint(0, 256, (1, 3, 224, 224)).float()
        image = torch.quantize_per_tensor(pixels, 1.0, 0, torch.quint8)
        image = image.contiguous(memory_format=torch.channels_last)
        signs = (torch.randint(0, 2, (64, 3, kernel, kernel)) * 2 - 1).float()
        weights = torch.quantize_per_tensor(signs, 1.0, 0, torch.qint8)
        packed = torch.ops.quantized.conv2d_prepack(
            weights, torch.zeros(64), [stride, stride], [padding, padding], [1, 1], 1
        )
        for _ in range(RUNS):
            torch.ops.quantized.conv2d(image, packed, 4.0, 0)


def onednn_times_us(isa: str) -> dict[str, list[float]]:
    """Times of oneDNN's primitive in us by layer name, the first five runs of each dropped."""
    environment = dict(os.environ, ONEDNN_VERBOSE="1")
    if isa:
        environment["ONEDNN_MAX_CPU_ISA"] = isa
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.first_layer_onednn", "--worker"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if ",exec,cpu,convolution," in line]
    if len(lines) != RUNS * len(LAYERS):
        raise RuntimeError(
            f"oneDNN printed {len(lines)} convolutions, expected {RUNS * len(LAYERS)}"
        )
    times = [float(line.rsplit(",", 1)[1]) * 1e3 for line in lines]
    return {layer[0]: times[i * RUNS + 5 : (i + 1) * RUNS] for i, layer in enumerate(LAYERS)}


def phonebit_time_us(bench: Path, layer: str, kernel: str) -> float | None:
    """Median of the benchmark's line for this layer; None where the machine lacks the kernel."""
    done = subprocess.run(
        [bench, "avx512", "15", layer], capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        match = re.search(rf"{kernel}\s+([\d.]+) us", line)
        if match:
            return float(match.group(1))
    return None


def compare(bench: Path, rounds: int) -> list[dict[str, object]]:
    """Takes turns for `rounds` rounds and returns a row per layer and instruction set."""
    rows = []
    for isa, kernel in PAIRS:
        theirs: dict[str, list[float]] = {layer[0]: [] for layer in LAYERS}
        ours: dict[str, list[float]] = {layer[0]: [] for layer in LAYERS}
        for _ in range(rounds):
            for layer, times in onednn_times_us(isa).items():
                theirs[layer].append(statistics.median(times))
            for layer in ours:
                time_us = phonebit_time_us(bench, layer, kernel)
                if time_us is not None:
                    ours[layer].append(time_us)
        for layer in ours:
            if not ours[layer]:
                print(f"{layer}: no {kernel} on this machine, skipped")
                continue
            ours_us, theirs_us = statistics.median(ours[layer]), statistics.median(theirs[layer])
            rows.append(
                {
                    "layer": layer,
                    "onednn_isa": isa or "best",
                    "kernel": kernel,
                    "phonebit_us": ours_us,
                    "phonebit_rounds_us": ours[layer],
                    "onednn_us": theirs_us,
                    "onednn_rounds_us": theirs[layer],
                    "ratio": theirs_us / ours_us,
                }
            )
    return rows


def main() -> None:
    """Reads the command line, compares, prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("bench", type=Path, nargs="?", help="the built phonebit_value_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the rows and the machine here")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        run_onednn()
        return
    if arguments.bench is None:
        parser.error("give the path of phonebit_value_bench")
    rows = compare(arguments.bench, arguments.rounds)
    for row in rows:
        print(
            f"{row['layer']:14} {row['kernel']:14} {row['phonebit_us']:8.1f} us   "
            f"oneDNN {row['onednn_isa']:17} {row['onednn_us']:8.1f} us   ratio {row['ratio']:.2f}"
        )
    if arguments.json:
        from benchmarks.run_context import run_context

        arguments.json.write_text(
            json.dumps({"context": run_context(), "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
