"""The results page's section on GPU peers, from the results files: nothing typed by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.chart import Bar, bar_chart
from benchmarks.markdown import filled, markdown_table
from benchmarks.peers.document import three_digits
from benchmarks.records import TITLES, Record, provenance, read_results

FOLDER: Final = Path(__file__).parent
FILE: Final = "peers_gpu.json"
BATCHES_FILE: Final = "peers_gpu_cudnn.json"
"""PhoneBit and cuDNN alone, in large batches."""
REFERENCE: Final = "phonebit"
BATCH_PEER: Final = "torch"
"""The engine that computes a batch as one pass."""
COMMAND: Final = "python -m benchmarks.peers.gpu.compare"
FORMS_AT: Final = (1, 8, 64)
"""Batch sizes at which all forms of PhoneBit are shown."""
SATURATED: Final = 0.9
"""Share of the highest throughput."""


def section() -> str:
    """Batches and cuDNN; times, ratios, throughput, start-up and failures of all engines."""
    return f"{render_batches(read_results(BATCHES_FILE))}\n\n{render(read_results(FILE))}"


def render_batches(document: Record) -> str:
    """Markdown of a results file of PhoneBit and cuDNN: the throughput curve and its reasons."""
    networks = document["networks"]
    forms = [
        f"Batch {size}, ms:\n\n{_by_engine(networks, size, _time_over_peer)}"
        for size in FORMS_AT
        if size in _sizes(networks)
    ]
    lines = [*saturation(networks), *tunings(networks), *remarks(networks)]
    values = {
        "source": provenance(document["context"], COMMAND),
        "curve": curve_table(networks),
        "forms": "\n\n".join(forms),
        "remarks": "\n".join(f"- {line}" for line in lines),
    }
    return filled(FOLDER / "batches.md", values)


def speed_chart() -> str:
    """Batches of a GPU: throughput of PhoneBit as a multiple of cuDNN's."""
    document = read_results(BATCHES_FILE)
    groups = []
    for network in document["networks"]:
        bars = []
        for series, batch in enumerate(FORMS_AT):
            ours, peer = (at_batch(_row_of(network, key), batch) for key in (REFERENCE, BATCH_PEER))
            if ours and peer:
                text = f"{peer['ratio']:.1f}x, {three_digits(batch / ours['median_ms'])}k/s"
                bars.append(Bar(series, peer["ratio"], text))
        groups.append((TITLES[network["name"]], bars))
    context = document["context"]
    title = f"Images per second over cuDNN's in half precision ({context['opencl']['device']})"
    return bar_chart(title, [f"batch {batch}" for batch in FORMS_AT], groups)


def curve_table(networks: list[Record]) -> str:
    """Batch sizes by network: throughput, and the ratio to cuDNN's."""

    def cell(network: Record, batch: int) -> str:
        ours, peer = (at_batch(_row_of(network, key), batch) for key in (REFERENCE, BATCH_PEER))
        if ours is None or peer is None:
            return "failed"
        return f"{three_digits(batch / ours['median_ms'])} **{peer['ratio']:.2g}x**"

    head = ("batch", *(TITLES[network["name"]] for network in networks))
    rows = [(str(batch), *(cell(each, batch) for each in networks)) for batch in _sizes(networks)]
    return markdown_table(head, rows)


def tunings(networks: list[Record]) -> list[str]:
    """How far the tuner came."""
    found = [
        (network, entry["title"], entry["tuning"])
        for network, entry in _entries(networks)
        if entry.get("tuning") and "limit_s" in entry["tuning"]
    ]
    if not found:
        return []
    _, title, tuning = found[0]
    stopped = [network for network, _, each in found if not each["complete"]]
    end = f"; stopped before its end: {', '.join(stopped)}" if stopped else ""
    return [
        f"{title}: after `phonebit tune --level {tuning['level']}`, all networks at the same "
        f"time, for at most {tuning['limit_s']:.0f} s{end}."
    ]


def saturation(networks: list[Record]) -> list[str]:
    """From which batch size on more images gain little, and how busy the device is then."""
    lines = []
    for network in networks:
        rows = _row_of(network, REFERENCE)["batches"]
        maximum = max(row["batch"] / row["median_ms"] for row in rows)
        enough = (row for row in rows if row["batch"] / row["median_ms"] >= SATURATED * maximum)
        first, last = min(row["batch"] for row in enough), rows[-1]
        share = min(1.0, last["device_ms"] / last["median_ms"])
        lines.append(
            f"{TITLES[network['name']]}: {SATURATED:.0%} of the highest throughput from batch "
            f"{first} on. At batch {last['batch']} kernels take {share:.0%} of the time; the rest "
            "is copies that do not overlap with them."
        )
    return lines


def render(document: Record) -> str:
    """Markdown of a results file of ``compare.py``."""
    networks = document["networks"]
    batches = _sizes(networks)
    tables = [
        f"Batch {batch}, ms:\n\n{_by_engine(networks, batch, _time)}" for batch in batches[:1]
    ]
    for batch in sorted({*batches[2::2], *batches[-1:]}):
        table = _by_engine(networks, batch, _images_per_ms)
        tables.append(f"Batch {batch}, thousands of images per second:\n\n{table}")
    values = {
        "source": provenance(document["context"], COMMAND),
        "times": "\n\n".join(tables),
        "starts": start_table(networks),
        "remarks": "\n".join(f"- {line}" for line in remarks(networks)),
    }
    return filled(FOLDER / "page.md", values)


def _by_engine(
    networks: list[Record], batch: int, cell: Callable[[Record, Record, Record], str]
) -> str:
    """Engines by network; a cell says something of the network, the engine and its batch."""

    def text(network: Record, title: str) -> str:
        entry = next((each for each in network["rows"] if each["title"] == title), None)
        row = entry and at_batch(entry, batch)
        return "" if entry is None else "failed" if row is None else cell(network, entry, row)

    complete_first = sorted(networks, key=lambda network: -len(network["rows"]))
    titles = dict.fromkeys(entry["title"] for _, entry in _entries(complete_first))
    head = ("engine", *(TITLES[network["name"]] for network in networks))
    return markdown_table(
        head, [(title, *(text(of, title) for of in networks)) for title in titles]
    )


def _host_and_device(row: Record) -> str:
    """``4.80 (4.10)``: host to host, and at most on the device alone where that is known.

    Inferences that are enqueued one after the other take as long as the slower of device and host.
    Where that is longer than host to host, it was the host, and tells nothing.
    """
    text, device_ms = three_digits(row["median_ms"]), row["device_ms"]
    if device_ms is None or device_ms > row["median_ms"]:
        return text
    return f"{text} ({three_digits(device_ms)})"


def _time(_: Record, entry: Record, row: Record) -> str:
    """And the ratio to PhoneBit."""
    is_peer = entry["key"] != REFERENCE and "ratio" in row
    return _host_and_device(row) + (f" **{row['ratio']:.2g}x**" if is_peer else "")


def _time_over_peer(network: Record, entry: Record, row: Record) -> str:
    """And how many times cuDNN's speed."""
    peer = at_batch(_row_of(network, BATCH_PEER), row["batch"])
    if peer is None:
        return "failed"
    text, is_peer = _host_and_device(row), entry["key"] == BATCH_PEER
    return text if is_peer else f"{text} **{peer['median_ms'] / row['median_ms']:.3g}x**"


def _images_per_ms(_: Record, _entry: Record, row: Record) -> str:
    return three_digits(row["batch"] / row["median_ms"])


def start_table(networks: list[Record]) -> str:
    """A start of each engine; PhoneBit's first, which builds and tests programs, and memory."""
    head = ("network", "engine", "start, s", "first start ever, s", "programs built", "device MiB")
    rows = []
    for network, entry in _entries(networks):
        if not entry.get("starts"):
            continue
        starts = [entry["starts"][0], entry["starts"][-1]]
        is_ours = len(entry["starts"]) > 1
        first_s, last_s = ((start["start_ms"] + start["first_ms"]) / 1e3 for start in starts)
        memory = [row["memory_mib"] for row in entry["batches"] if row["memory_mib"] is not None]
        cells = (
            f"{last_s:.2f}",
            f"{first_s:.2f}" if is_ours else "",
            ", then ".join(f"{start['programs_built']:.0f}" for start in starts if is_ours),
            f"{max(memory):.0f}" if memory else "not told",
        )
        rows.append((network, entry["title"], *cells))
    return markdown_table(head, rows, texts=2) if rows else ""


def remarks(networks: list[Record]) -> list[str]:
    """What readers must know: exactness, notes of engines, failures with their reasons."""
    lines = [*_rounds(networks), *_agreements(networks)]
    notes: dict[str, dict[str, None]] = {}
    for _, entry in _entries(networks):
        notes.setdefault(entry["title"], {}).update(dict.fromkeys(entry.get("notes", [])))
    lines += [f"{title}: {note}." for title, texts in notes.items() for note in texts]
    for network, entry in _entries(networks):
        if "failure" in entry:
            reason = " ".join(entry["failure"].split())
            lines.append(f"{entry['title']} failed on {network}: `{reason}`")
    return lines


def _rounds(networks: list[Record]) -> list[str]:
    """How many rounds were measured, and how few of them counted in the worst case."""
    rows = [row for _, entry in _entries(networks) for row in entry["batches"]]
    if not rows:
        return []
    counts, quiet = [row["rounds"] for row in rows], [row["steady"] for row in rows]
    return [
        f"Rounds for a number: {min(counts)} to {max(counts)}; at least {min(quiet)} of them were "
        "quiet by the noise probe, fixed work on the host. Those count; all, where fewer than 3 "
        "were."
    ]


def _agreements(networks: list[Record]) -> list[str]:
    """One line an engine: bits or the largest difference from the reference."""
    found: dict[str, list[tuple[str, Record]]] = {}
    for network, entry in _entries(networks):
        found.setdefault(entry["title"], []).extend((network, row) for row in entry["agreement"])
    lines = []
    for title, rows in found.items():
        if rows and all(row["equal"] for _, row in rows):
            lines.append(f"{title}: results equal to the CPU backend's to the last bit.")
            continue
        if differences := [row["difference"] for _, row in rows if row["finite"]]:
            largest = f"{max(differences):.1e} of the largest reference value"
            lines.append(f"{title}: results within {largest}.")
        if broken := dict.fromkeys(network for network, row in rows if not row["finite"]):
            lines.append(f"{title}: results that are no numbers on {', '.join(broken)}.")
    return lines


def at_batch(entry: Record, batch: int) -> Record | None:
    """A contender's row for a batch size."""
    rows: list[Record] = entry["batches"]
    return next((row for row in rows if row["batch"] == batch), None)


def _sizes(networks: list[Record]) -> list[int]:
    """Batch sizes that were measured."""
    return sorted({row["batch"] for _, entry in _entries(networks) for row in entry["batches"]})


def _entries(networks: list[Record]) -> list[tuple[str, Record]]:
    """The networks' titles, and each contender's results there."""
    return [(TITLES[network["name"]], entry) for network in networks for entry in network["rows"]]


def _row_of(network: Record, key: str) -> Record:
    row: Record = next(row for row in network["rows"] if row["key"] == key)
    return row
