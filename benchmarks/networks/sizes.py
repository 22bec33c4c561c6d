"""Sizes of the paper's networks as files, next to its table II.

    python -m benchmarks.networks.sizes        # a minute, 3 GB of memory; writes results/sizes.json

Float: the twin with float32 weights, batch normalizations folded into them. Binary: with the last
layer in float32 ("binary_f32") and in half precision ("binary_f16").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.command_line import parser_of
from benchmarks.networks.document import sizes_table
from benchmarks.peers.formats.source_graphs import fold_batch_norm
from benchmarks.records import PAPER, RESULTS, run_context, write_results
from phonebit.converter.convert import convert_graph
from phonebit.models.networks import INPUT_RANGE, NETWORKS, converted

FILE: Final = RESULTS / "sizes.json"
PAPER_MB: Final = PAPER["sizes_mb"]


def float_twin(name: str) -> bytes:
    """The twin as a ``.pbit`` file that reads reals; batch normalizations are part of the weights.

    ``phonebit models NAME --form float`` keeps their scales next to the weights: the same layers, a
    little larger and slower than what the float engines of other people deploy.
    """
    graph = fold_batch_norm(NETWORKS[name]("float"))
    return convert_graph(graph, input_range=INPUT_RANGE, check=False).content


def measure(name: str) -> dict[str, Any]:
    """Sizes in bytes."""
    return {
        "paper_mb": PAPER_MB[name],
        "parameters": NETWORKS[name].facts().parameters,
        "bytes": {
            "float": len(float_twin(name)),
            "binary_f32": len(converted(name).content),
            "binary_f16": len(converted(name, float_weights="f16").content),
        },
    }


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", nargs="+", choices=PAPER_MB, default=[*PAPER_MB])
    parser.add_argument("--json", type=Path, default=FILE)
    options = parser.parse_args()
    rows = {name: measure(name) for name in options.networks}
    document = {"context": run_context(), "networks": rows}
    write_results(options.json, document)
    print(sizes_table(document))


if __name__ == "__main__":
    main()
