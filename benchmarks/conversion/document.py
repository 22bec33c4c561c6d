"""The table as people read it: docs/results/networks.md, from results/conversion.json."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.records import provenance, read_results

FILE: Final = "conversion.json"

Rows = list[dict[str, Any]]

COLUMNS = (
    "network",
    "converts",
    "binary MACs",
    "largest difference",
    "argmax",
    "layers equal",
    "rounding-sensitive",
    ".pbit of float",
    "kernels",
    "MB moved",
    "s",
)

HEAD = """Every architecture of larq-zoo, and published PyTorch networks as
`tests/support/torch_networks` defines them, with random weights and typical statistics, on
{pictures} images each.

- *binary MACs*: share of the multiply-accumulates that is xor and popcount.
- *largest difference*: of an output element from the framework's, end to end, and as a share of
  the largest output. Before a softmax, if that is the last layer.
- *argmax*: images with the framework's best class.
- *layers equal*: each operator compared alone, on the framework's own values: equal to the last
  bit + within 1e-5 of the layer's largest value (other order of float sums), of all.
- *rounding-sensitive*: images for which a value before a sign is zero up to rounding (or exactly
  zero, where PyTorch's sign is 0), so that a bit may differ. Random networks amplify that. It is
  the cause of every difference beyond rounding, or the row says how many have no such cause.
- *.pbit of float*: size of the file, and of all parameters as float32.
- *kernels*: operators of an inference. *MB moved*: bytes they read and write per image, constants
  included.
- *s*: seconds for the conversion, including its own check.

{source}.
"""


def cells(row: dict[str, Any]) -> list[str]:
    """A row's texts, by ``COLUMNS``."""
    if row["converts"] != "yes":
        return [row["network"], row["converts"], *[""] * (len(COLUMNS) - 2)]
    scale = row["tolerance"] / 1e-5
    relative = row["max_difference"] / scale if scale else 0.0
    difference = f"{row['max_difference']:.1e} ({relative:.0e})" if row["max_difference"] else "0"
    missed = f", {row['missed']} missed" if row["missed"] else ""
    return [
        f"{row['network']} {'x'.join(str(side) for side in row['input_shape'][:2])}",
        "yes",
        f"{100 * row['binary_share']:.1f} %{missed}",
        difference,
        f"{row['same_argmax']}/{row['pictures']}",
        f"{row['equal_layers']} + {row['close_layers']} of {row['layers']}",
        f"{row['tied_pictures']}/{row['pictures']}" + _unexplained(row),
        f"{row['file_bytes'] / 1e6:.2f} of {row['float_bytes'] / 1e6:.1f} MB",
        str(row["kernels"]),
        f"{row['moved_bytes'] / 1e6:.1f}",
        f"{row['seconds']:.1f}",
    ]


def _unexplained(row: dict[str, Any]) -> str:
    return f", {row['unexplained']} unexplained" if row["unexplained"] else ""


def section() -> str:
    """What the columns are, and the tables."""
    document = read_results(FILE)
    rows = document["networks"]
    pictures = max(row["pictures"] for row in rows)
    source = provenance(document["context"], "python -m benchmarks.conversion.table")
    return HEAD.format(pictures=pictures, source=source) + "\n" + tables(rows)


def tables(rows: Rows) -> str:
    """A table a framework, and why networks do not convert."""
    parts = []
    for framework in ("Larq", "PyTorch"):
        chosen = [row for row in rows if row["framework"] == framework]
        if not chosen:
            continue
        parts += [f"## {framework}", markdown_table(COLUMNS, map(cells, chosen), texts=2)]
        failed = [row for row in chosen if row["converts"] != "yes"]
        reasons = [f"- {row['network']}: {' '.join(row['reason'].split())}" for row in failed]
        parts += ["\n".join(reasons)] if reasons else []
    return "\n\n".join(parts) + "\n"
