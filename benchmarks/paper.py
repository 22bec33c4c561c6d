"""The PhoneBit paper's tables II, III, IV and figure 5, redone on this machine: one page.

    python -m benchmarks.paper                  # the CPU, and an OpenCL device if there is one
    python -m benchmarks.paper --smoke          # less than a minute: YOLOv2-Tiny on the CPU

Each part is a command in a process of its own; its JSON and files stay in --work. What is not here,
a peer, a device, a source of energy, is a row with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import ROOT, accuracy
from benchmarks.command_line import last_error, parser_of
from benchmarks.energy import document as energy
from benchmarks.gpu_kernels import document as gpu_kernels
from benchmarks.markdown import markdown_table
from benchmarks.networks import document as networks
from benchmarks.peers import document as peers
from benchmarks.peers.gpu import document as gpu_peers
from benchmarks.records import PAPER, TITLES, Record, provenance, read_results, run_context
from phonebit.devices.gpus import gpu_devices, gpu_error


def sizes_and_accuracy(document: Record) -> str:
    """Table II. Accuracy is of the repository's trained networks; nothing is trained now."""
    stored = (read_results("accuracy.json"), read_results("detection.json"))
    ours = {row["network"]: row for results in stored for row in results["networks"]}
    rows = []
    for paper in PAPER["accuracy"]:
        row = ours[paper["network"]]
        if "scenes" in row:
            here = f"YOLOv2-Tiny, {row['scenes']:,} garment scenes (mAP)", "not trained"
        else:
            title = accuracy.TITLES[paper["network"]]
            here = f"{title}, Fashion-MNIST", f"{row['accuracy_of_float_twin']:.1%}"
        result = row["engine"]["cpu"]
        theirs = (paper["paper"], f"{paper['float']:.1%}", f"{paper['binary']:.1%}")
        rows.append([*theirs, *here, f"{result.get('map', result.get('accuracy')):.1%}"])
    head = ("paper", "float", "binary", "here: other networks, other data", "float", "binary")
    return f"""{networks.sizes_section(document)}

Accuracy, from `benchmarks/results`, not measured now:

{markdown_table(head, rows)}"""


def latencies(document: Record) -> str:
    """Table III in front of the rows of all engines."""
    kinds = [group for name, (group, *_) in peers.README_COLUMNS if "/" not in name]
    rows = []
    for case in document["cases"]:
        found = [peers.fastest(case["rows"], kind) or {} for kind in kinds]
        here = _times([row.get("median_ms") for row in found])
        rows.append((TITLES[case["network"]], *_times(PAPER["latency_ms"][case["network"]]), *here))
    head = ("ms (over PhoneBit)", *(f"paper: {engine}" for engine in PAPER["engines"]), "best f32",
            "best int8", "PhoneBit")  # fmt: skip
    table = markdown_table(head, rows)
    text = "The paper's times are of a Snapdragon 855, the last three of this CPU, one thread."
    return f"## Latency compared with table III\n\n{text}\n\n{table}\n\n{peers.render(document)}"


def _times(times: Sequence[float | None]) -> list[str]:
    """Milliseconds, and how many times PhoneBit's, the last ones, they are."""
    ours = times[-1]
    return [f"{ms:.3g} ({ms / ours:.1f}x)" if ms and ours else "-" for ms in times]


PAPERS: Final = "--networks alexnet yolov2_tiny vgg16"
FILES: Final = "--work WORK --tensorflow-python TENSORFLOW"
TABLE_IV: Final = "energy.table_iv --networks yolov2_tiny --device"
FIGURE_5: Final = "networks.per_layer --peer-python PEERS --device"
PARTS: Final[dict[str, tuple[str, str | None, Callable[[Record], str]]]] = {
    "table-ii": ("networks.sizes", "--networks yolov2_tiny", sizes_and_accuracy),
    "table-iii": (f"peers.compare_networks {PAPERS} --threads 1 --peers-python PEERS {FILES}",
                  "--networks yolov2_tiny --engines pytorch --budget-s 1", latencies),
    "table-iii-gpu": (f"peers.gpu.compare {PAPERS} --batches 1 {FILES}", None, gpu_peers.render),
    "table-iv": (f"{TABLE_IV} cpu", "--no-twin --seconds 0.5", energy.render),
    "table-iv-gpu": (f"{TABLE_IV} gpu", None, energy.render),
    "figure-5": (f"{FIGURE_5} cpu", "--rounds 1 --repeats 1",
                 partial(networks.per_layer_section, kind="cpu")),
    "figure-5-gpu": (f"{FIGURE_5} gpu", None, partial(networks.per_layer_section, kind="gpu")),
    "kernels-gpu": ("gpu_kernels.bench_gpu_kernels", None, gpu_kernels.kernels_section),
}  # fmt: skip
"""By name: the command, what ``--smoke`` adds (None: left out), its JSON as Markdown."""


def measured(name: str, options: argparse.Namespace) -> tuple[str, str]:
    """What a part's row says of it, and its section of the page: empty where it has no results."""
    command, smoke, render = PARTS[name]
    if options.smoke and smoke is None:
        return "left out by --smoke", ""
    if name.endswith("-gpu") and not gpu_devices():
        return f"no OpenCL device: {gpu_error()}", ""
    places = {"WORK": str(options.work), "PEERS": options.peers_python,
              "TENSORFLOW": options.tensorflow_python}  # fmt: skip
    results = options.work / f"{name}.json"
    results.unlink(missing_ok=True)
    given = f"{command} {smoke if options.smoke else ''}".split()
    module, *words = (places.get(word, word) for word in given)
    print(name, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *words, f"--json={results}"],
        stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if not results.is_file():
        return f"failed: {last_error(done.stderr) or f'exit code {done.returncode}'}", ""
    document = json.loads(results.read_text())
    return state_of(document), render(document)


def state_of(document: Record) -> str:
    """Whether something was measured: engines fail, and machines have no source of energy."""
    rows = [row for case in document.get("cases", []) for row in case.get("rows", [])]
    rows += document.get("rows", [])
    count = sum(map(_is_measured, rows))
    if count == len(rows):  # or a document of another form
        return "measured"
    return f"measured: {count} of {len(rows)} rows" if count else "nothing could be measured"


def _is_measured(row: Record) -> bool:
    return bool(row["energy"]["measured"]) if "energy" in row else "median_ms" in row


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the parts and writes the page."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--work", type=Path, default=Path("build/paper"), help="folder of page and files"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--smoke", action="store_true", help="the least that shows that it works")
    parser.add_argument("--peers-python", default=sys.executable, help="see peers/README.md")
    parser.add_argument("--tensorflow-python", default=sys.executable, help="likewise")
    options = parser.parse_args(arguments)
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    found = {name: measured(name, options) for name in options.parts}
    states = [(name, state) for name, (state, _) in found.items()]
    command = "python -m benchmarks.paper" + (" --smoke" if options.smoke else "")
    page = ["# The PhoneBit paper's tables and figure 5", f"{provenance(run_context(), command)}.",
            markdown_table(("part", "state"), states, texts=2),
            *(text.strip() for _, text in found.values() if text)]  # fmt: skip
    docs = os.path.relpath(ROOT / "docs", options.work)
    file = options.work / "paper.md"
    file.write_text("\n\n".join(page).replace("](../", f"]({docs}/") + "\n")
    print(file)


if __name__ == "__main__":
    main()
