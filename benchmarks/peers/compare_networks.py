"""Whole networks on the CPU next to Larq Compute Engine, OpenVINO, ONNX Runtime, LiteRT, PyTorch.

    python -m benchmarks.peers.compare_networks --work ~/peers --prepare   # writes files, once
    python -m benchmarks.peers.compare_networks --work ~/peers             # measures

Each engine is a process of its own that holds one network. They take turns, A B C ... A B C ...;
each turn is a pause, uncounted passes and timed ones. An engine that fails is a row with the
reason. README.md here says how to make their environments. Writes the JSON file of which
``document.py`` makes tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.command_line import parser_of
from benchmarks.peers.harness.catalogue import OURS, SUBJECTS, contenders_for, kinds_for
from benchmarks.peers.harness.files import Files
from benchmarks.peers.harness.measure import measure
from benchmarks.records import RESULTS, run_context, write_results
from benchmarks.rounds import NOISE_LIMIT
from phonebit.devices.runtime import instruction_sets, isa_in_use

FILE: Final = RESULTS / "peers_cpu.json"


def report(entry: dict[str, Any], title: str) -> None:
    """One case in a line, and what failed in it, next to the results."""
    lines = [
        f"{title}, {entry['threads']} threads, batch {entry['batch']}: "
        f"{entry['steady']} of {entry['rounds']} rounds quiet"
    ]
    for row in entry["rows"]:
        if "reason" in row:
            lines.append(f"  {row['title']} {row['precision']} failed: {row['reason']}")
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = parser_of(__doc__)
    names = [entry.name for entry in SUBJECTS]
    parser.add_argument("--work", type=Path, required=True, help="folder for the networks' files")
    parser.add_argument("--prepare", action="store_true", help="write the files and stop")
    parser.add_argument("--networks", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--engines", nargs="+", default=[], help="next to phonebit; default: all")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batch", nargs="+", type=int, default=[1])
    parser.add_argument(
        "--budget-s", type=float, default=25, help="of the rounds of a network and thread count"
    )
    parser.add_argument("--float-weights", choices=("f16", "f32"), default="f16")
    parser.add_argument("--peers-python", default=sys.executable, help="README.md: environments")
    parser.add_argument("--tensorflow-python", default=sys.executable)
    parser.add_argument("--json", type=Path, default=FILE)
    parser.add_argument("--add", action="store_true", help="keep the file's other cases")
    return parser.parse_args()


def main() -> None:
    """Prepares, measures, writes."""
    options = options_of()
    peers, tensorflow = options.peers_python, options.tensorflow_python
    files = Files(
        options.work.resolve(),
        {"phonebit": sys.executable, "peers": peers, "tensorflow": tensorflow},
        options.float_weights,
    )
    settings = {"float_weights": options.float_weights, "canary_limit": NOISE_LIMIT}
    context = run_context() | {"isa": isa_in_use(instruction_sets())}
    document: dict[str, Any] = {"context": context, "settings": settings}
    document["cases"] = earlier_cases(options.json, context) if options.add else []
    for subject in (entry for entry in SUBJECTS if entry.name in options.networks):
        contenders = [
            each
            for each in contenders_for(subject)
            if not options.engines or each.engine in (*options.engines, OURS.engine)
        ]
        missing = files.prepare(subject, kinds_for(subject, contenders))
        if options.prepare:
            continue
        for batch, threads in itertools.product(options.batch, options.threads):
            running = [each for each in contenders if each.runs(batch)]
            entry = measure(subject, threads, batch, running, files, missing, options.budget_s)
            report(entry, subject.title)
            key = {name: entry[name] for name in ("network", "threads", "batch")}
            others = [each for each in document["cases"] if not key.items() <= each.items()]
            document["cases"] = [*others, entry]
            write_results(options.json, document)


def earlier_cases(path: Path, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a results file of the same machine."""
    document = json.loads(path.read_text())
    other = document["context"]["cpu"]
    if other != context["cpu"]:
        raise SystemExit(f"--add: {path} is of another machine ({other}); choose another --json")
    cases: list[dict[str, Any]] = document["cases"]
    return cases


if __name__ == "__main__":
    main()
