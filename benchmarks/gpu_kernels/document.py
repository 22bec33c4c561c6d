"""The results page's section on OpenCL kernels, from results/gpu_*.json."""

from __future__ import annotations

from benchmarks.markdown_table import markdown_table
from benchmarks.records import RESULTS, read_results


def section() -> str:
    """Kernels of a GPU, and what enqueueing costs."""
    document = read_results("gpu_kernels.json")
    peak = document["popcount_peak_tops"]
    rows = [
        (
            row["layer"],
            row["choice"].split()[0],
            f"{row['time_us']:.1f}",
            f"{row['tops']:.0f}",
            f"{row['tops'] / peak:.0%}",
        )
        for row in document["rows"]
    ]
    head = ("layer", "kernel", "us", "TOPS", "share of the popcount peak")
    return "\n\n".join(
        [
            "## Kernels on a GPU",
            f"{document['device']}, driver {document['driver']}, {document['date'][:10]}. "
            "`python -m benchmarks.gpu_kernels.bench_gpu_kernels`, "
            "`benchmarks/results/gpu_kernels.json`. Kernel time by events, batch "
            f"{document['batch']}, median of {document['repeats']}. The peak of the popcount units "
            f"is {peak:.0f} TOPS; `bconv2d_mma` uses the tensor cores.",
            markdown_table(head, rows, texts=2),
            "### Overhead of a layer",
            "`python -m benchmarks.gpu_kernels.bench_overhead`. Microseconds from enqueueing to "
            "the result for a network of one layer, and for each further layer.",
            _overhead(),
        ]
    )


def _overhead() -> str:
    rows = []
    for path in sorted(RESULTS.glob("gpu_overhead_*.json")):
        document = read_results(path.name)
        for row in document["rows"]:
            times = (f"{row[name]:.1f}" for name in ("one_layer_us", "per_layer_us"))
            rows.append((document["device"], document["driver"], row["mode"], *times))
    head = ("device", "driver", "mode", "one layer", "each further layer")
    return markdown_table(head, rows, texts=3)
