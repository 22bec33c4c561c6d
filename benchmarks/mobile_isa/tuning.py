"""What bnn_kernels/tuning.table says of an op on a GPU that has no entry of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A line of the table; `signature` of an exact shape stands in `shape`."""

    op: str
    shape: str
    vendor: str
    family: str
    device: str
    kernel: str
    parameters: tuple[tuple[str, int], ...]


def parse(text: str) -> list[Entry]:
    """The table's lines, in order."""
    entries = []
    for line in text.splitlines():
        fields = line.partition("#")[0].split()
        if fields:
            parameters = (field.partition("=") for field in fields[6:])
            entries.append(
                Entry(*fields[:6], tuple((name, int(value)) for name, _, value in parameters))
            )
    return entries


def choices(entries: list[Entry], op: str, shape: str, vendor: str, family: str) -> list[Entry]:
    """Entries that fit, the most specific first, as the runtime tries them."""
    fitting = []
    for entry in entries:
        pairs = ((entry.family, family, 8), (entry.vendor, vendor, 4), (entry.shape, shape, 1))
        if (
            entry.op == op
            and entry.device == "*"
            and all(have in ("*", want) for have, want, _ in pairs)
        ):
            score = sum(weight for have, _, weight in pairs if have != "*")
            fitting.append((score, entry))
    fitting.sort(key=lambda scored: -scored[0])
    return [entry for _, entry in fitting]
