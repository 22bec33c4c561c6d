"""The tables as people read them: docs/networks.md and docs/results/networks.md."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.conversion.papers import PAPERS, TRAINED
from benchmarks.markdown_table import Columns, records_table
from benchmarks.records import provenance, read_results

FILE: Final = "conversion.json"
TASKS_FILE: Final = "conversion_tasks.json"
"""Networks that do not classify pictures."""

Row = dict[str, Any]
Rows = list[Row]

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


def _difference(row: Row) -> str:
    scale = row["tolerance"] / 1e-5
    relative = row["max_difference"] / scale if scale else 0.0
    return f"{row['max_difference']:.1e} ({relative:.0e})" if row["max_difference"] else "0"


def _further(row: Row, what: str) -> str:
    return f", {row[what]} {what}" if row[what] else ""


COLUMNS: Final[Columns] = (
    ("network", lambda row: f"{row['network']} {'x'.join(map(str, row['input_shape'][:2]))}"),
    ("converts", "{converts}"),
    ("binary MACs", lambda row: f"{100 * row['binary_share']:.1f} %{_further(row, 'missed')}"),
    ("largest difference", _difference),
    ("argmax", "{same_argmax}/{pictures}"),
    ("layers equal", "{equal_layers} + {close_layers} of {layers}"),
    (
        "rounding-sensitive",
        lambda row: f"{row['tied_pictures']}/{row['pictures']}{_further(row, 'unexplained')}",
    ),
    (
        ".pbit of float",
        lambda row: f"{row['file_bytes'] / 1e6:.2f} of {row['float_bytes'] / 1e6:.1f} MB",
    ),
    ("kernels", "{kernels}"),
    ("MB moved", lambda row: f"{row['moved_bytes'] / 1e6:.1f}"),
    ("s", "{seconds:.1f}"),
)
COMMAND: Final = "python -m benchmarks.conversion.table"


def _compared(row: Row) -> str:
    close = row["close_layers"]
    return f"{row['equal_layers']} equal" + (f", {close} within 1e-5" if close else "")


OVERVIEW_COLUMNS: Final[Columns] = (
    ("network", "{network}"),
    ("paper", lambda row: PAPERS[row["network"]]),
    ("framework", "{framework}"),
    ("weights", lambda row: TRAINED.get(row["network"], "random")),
    ("layers compared", _compared),
    ("binary MACs", lambda row: f"{100 * row['binary_share']:.1f} %"),
    (".pbit", lambda row: f"{row['file_bytes'] / 1e6:.2f} MB"),
)

OVERVIEW = f"""# Networks

Larq-zoo's networks, and PyTorch networks written from their papers, all of which convert. Each
operator is compared alone, on the framework's own values. Tests also make float32 arithmetic exact,
where the network permits it, and demand the framework's results to the last bit.
[Measurements](results/networks.md) has the differences end to end, and what causes them; networks
trained for this project are on the [results page](results/index.md#accuracy).

`{COMMAND}` measures and prints all networks, and the operators of each source. This page is written
by `python -m benchmarks.results_page`.
"""


def section() -> str:
    """What the columns are, and the tables."""
    document, tasks = read_results(FILE), read_results(TASKS_FILE)
    rows = document["networks"]
    pictures = max(row["pictures"] for row in rows)
    source = provenance(document["context"], COMMAND)
    others = provenance(tasks["context"], COMMAND)
    parts = [HEAD.format(pictures=pictures, source=source), tables(rows)]
    parts += [f"## Other tasks, and Brevitas\n\n{others}.\n", _table(tasks["networks"])]
    return "\n".join(parts)


def overview() -> str:
    """The page that lists all networks."""
    rows = [*read_results(FILE)["networks"], *read_results(TASKS_FILE)["networks"]]
    return f"{OVERVIEW}\n{records_table(rows, OVERVIEW_COLUMNS, texts=5)}\n"


def tables(rows: Rows) -> str:
    """A table a framework, and why networks do not convert."""
    parts = []
    for framework in ("Larq", "PyTorch"):
        chosen = [row for row in rows if row["framework"] == framework]
        if not chosen:
            continue
        parts += [f"## {framework}", _table(chosen)]
    return "\n\n".join(parts) + "\n"


def _table(rows: Rows) -> str:
    """What converts, and below why the rest does not."""
    failed = [row for row in rows if row["converts"] != "yes"]
    parts = [records_table((row for row in rows if row not in failed), COLUMNS, texts=2)]
    reasons = [
        f"- {row['network']} does not convert: {' '.join(row['reason'].split())}" for row in failed
    ]
    return "\n\n".join(parts + (["\n".join(reasons)] if reasons else []))
