#!/usr/bin/env python3
"""OpenCL kernels as machine code of Adreno and Mali GPUs that are not at hand.

Mesa's compilers translate every kernel for the layers in layers.py, with the parameters that
bnn_kernels/tuning.table chooses and with others. README.md says how to read the numbers; nothing is
executed, and nothing here is a measurement.

    benchmarks/mobile_isa/setup.sh ~/mobile_isa
    python -m benchmarks.mobile_isa.mobile_isa --isa ~/mobile_isa --check
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.command_line import parser_of
from benchmarks.mobile_isa.compiler import GPUS, mesa_version
from benchmarks.mobile_isa.judge import Row, best, cases, compile_rows
from benchmarks.mobile_isa.tuning import parse
from phonebit.bnn_kernels.sources import FOLDER

BEGIN, END = "<!-- mobile_isa: begin -->", "<!-- mobile_isa: end -->"
MARKDOWN_LAYERS = ("3x3 64@56", "3x3 256@14", "1x1 64-128@56", "dense 25088-4096")
REPRESENTATIVES = ("adreno-730", "mali-g610")
COLUMNS = (
    "gpu", "layer", "kernel", "parameters", "role", "unit", "instructions_per_unit",
    "cycles_per_unit", "bound", "loads_per_unit", "static_instructions", "registers", "occupancy",
    "spills", "fills", "scratch", "problem",
)  # fmt: skip


def main() -> int:
    """Returns 1 when --check finds a choice that spills or uses scratch memory."""
    arguments = _arguments()
    table_path = FOLDER / "tuning.table"
    table = parse(table_path.read_text()) if table_path.exists() else []

    def judge(name: str) -> list[Row]:
        wanted = [
            case
            for case in cases(GPUS[name], table)
            if (case.role or (name in arguments.try_on and not arguments.check))
            and re.search(arguments.kernels, case.kernel)
            and re.search(arguments.layers, case.layer.name)
        ]
        log = arguments.logs / f"{name}.log" if arguments.logs else None
        return compile_rows(arguments.isa, GPUS[name], wanted, log)

    rows: list[Row] = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            for found in pool.map(judge, arguments.gpus):
                rows += found
                _print_rows(found)
                sys.stdout.flush()
        except RuntimeError as error:
            sys.exit(f"mobile_isa: {error}")
    if arguments.json:
        _write_json(arguments.json, mesa_version(arguments.isa), rows)
    if arguments.markdown:
        _write_markdown(arguments.markdown, mesa_version(arguments.isa), rows)
    return _report(rows) if arguments.check else 0


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--isa", type=Path, required=True, help="folder given to setup.sh")
    parser.add_argument("--gpus", nargs="+", choices=GPUS, default=list(GPUS), metavar="GPU")
    parser.add_argument(
        "--try-on",
        nargs="*",
        choices=GPUS,
        default=REPRESENTATIVES,
        metavar="GPU",
        help="where parameters that nothing chooses are tried too; one GPU a vendor by default",
    )
    parser.add_argument("--kernels", default="", help="only kernels that match this pattern")
    parser.add_argument("--layers", default="", help="only layers that match this pattern")
    parser.add_argument("--jobs", type=int, default=2, help="GPUs at a time (default 2)")
    parser.add_argument("--check", action="store_true", help="judge choices and defaults only")
    parser.add_argument("--json", type=Path, help="also write all rows to this file")
    parser.add_argument("--markdown", type=Path, help="rewrite the table between this file's marks")
    parser.add_argument("--logs", type=Path, help="keep the compilers' output in this folder")
    return parser.parse_args()


def _text(parameters: Iterable[tuple[str, int]]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _print_rows(rows: Sequence[Row]) -> None:
    """One block a layer, the cheapest case first."""
    layers = dict.fromkeys(row.case.layer.name for row in rows)
    for layer in layers:
        mine = [row for row in rows if row.case.layer.name == layer]
        mine.sort(key=lambda row: (row.cycles is None, row.cycles))
        print(f"\n{mine[0].gpu}   {layer}   [a {mine[0].unit}]")
        print(
            f"  {'instr':>6} {'cycles':>7} {'bound':>5} {'loads':>6} {'static':>7} {'regs':>4} "
            f"{'occ':>3} {'spill':>5} {'scratch':>7}  {'role':<8}kernel"
        )
        for row in mine:
            label = f"{row.case.role:<8}{row.case.kernel} {_text(row.case.parameters)}"
            one = row.statistics
            if one is None:
                print(f"  FAILED: {label}\n    {row.problem.strip().splitlines()[-1]}")
                continue
            print(
                f"  {_number(row.instructions):>6} {_number(row.cycles):>7} {row.bound:>5} "
                f"{_number(row.messages):>6} "
                f"{one.instructions:>7} {one.registers:>4} {one.occupancy:>3} "
                f"{one.spills + one.fills:>5} {one.scratch:>7}  {label}"
            )


def _write_json(path: Path, mesa: str, rows: Sequence[Row]) -> None:
    """One line a row, with the columns' names once."""
    lines = []
    for row in rows:
        one = row.statistics
        numbers: list[int | None] = [None] * 6
        if one is not None:
            numbers = [one.instructions, one.registers, one.occupancy]
            numbers += [one.spills, one.fills, one.scratch]
        case = row.case
        fields = [
            row.gpu,
            case.layer.name,
            case.kernel,
            _text(case.parameters),
            case.role,
            row.unit,
        ]
        fields += [value and round(value, 4) for value in (row.instructions, row.cycles)]
        fields += [row.bound, row.messages and round(row.messages, 4)]
        lines.append(json.dumps([*fields, *numbers, row.problem.strip()]))
    head = json.dumps({"compiler": f"Mesa {mesa}", "executed": False, "columns": COLUMNS})
    path.write_text(head[:-1] + ',\n"rows": [\n' + ",\n".join(lines) + "\n]}\n")


def _write_markdown(path: Path, mesa: str, rows: Sequence[Row]) -> None:
    """Rewrites what stands between the marks."""
    text = path.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"mobile_isa: {path} has no marks {BEGIN} and {END}")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(before + BEGIN + "\n" + _markdown(mesa, rows) + END + after)


def _markdown(mesa: str, rows: Sequence[Row]) -> str:
    """What is chosen for each GPU, beside the best that was tried."""
    lines = [
        f"Compiled by Mesa {mesa}, executed nowhere. Instructions (Bifrost: tuples), cycles of",
        "the busiest arithmetic unit (Adreno: issue slots) and loads for 32 binary MACs. All rows:",
        "`benchmarks/results/mobile_isa.json`.",
        "",
        "| GPU | layer | chosen | instr | cycles | loads | registers | occ | cheapest tried |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        layer, one = row.case.layer.name, row.statistics
        if row.case.role != "chosen" or layer not in MARKDOWN_LAYERS or one is None:
            continue
        cheapest = best(
            [other for other in rows if (other.gpu, other.case.layer.name) == (row.gpu, layer)]
        )
        beside = ""
        if cheapest is not None and cheapest is not row:
            beside = f"`{_short(cheapest)}` {_number(cheapest.cycles)}"
        lines.append(
            f"| {row.gpu} | {layer} | `{_short(row)}` | {_number(row.instructions)} | "
            f"{_number(row.cycles)} ({row.bound}) | "
            f"{_number(row.messages)} | {one.registers} | {one.occupancy} | {beside} |"
        )
    return "\n".join(lines) + "\n"


def _short(row: Row) -> str:
    values = dict(row.case.parameters)
    tile = "x".join(str(values[k]) for k in ("TILE_PIXELS", "TILE_FILTERS") if k in values)
    more = {"VECTOR_WORDS": f"v{values.get('VECTOR_WORDS')}", "COUNT": "carry-save"}
    more["ACCUMULATOR"] = "u16"
    extra = [mark for name, mark in more.items() if values.get(name)]
    return " ".join([row.case.kernel, tile, *extra]).strip()


def _report(rows: Sequence[Row]) -> int:
    bad = [row for row in rows if row.case.role and row.is_bad]
    for row in bad:
        one = row.statistics
        what = row.problem.strip() or "no statistics"
        if one is not None:
            what = (
                f"{one.spills} spills, {one.fills} fills, {one.scratch} accesses to scratch memory"
            )
        case = row.case
        print(
            f"BAD ({case.role}): {row.gpu}, {case.layer.name}: {case.kernel} "
            f"{_text(case.parameters)}: {what}"
        )
    judged = sum(1 for row in rows if row.case.role)
    print(f"\n{judged - len(bad)} of {judged} choices and defaults keep to registers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
