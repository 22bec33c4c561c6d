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
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command_line import parser_of
from benchmarks.markdown_table import markdown_table
from benchmarks.mobile_isa.compiler import GPUS, mesa_version
from benchmarks.mobile_isa.judge import Row, best, cases, compile_rows
from benchmarks.mobile_isa.tuning import parse
from benchmarks.records import write_results
from phonebit.bnn_kernels.sources import FOLDER

BEGIN, END = "<!-- mobile_isa: begin -->", "<!-- mobile_isa: end -->"
MARKDOWN_LAYERS = ("3x3 64@56", "3x3 256@14", "1x1 64-128@56", "dense 25088-4096")
REPRESENTATIVES = ("adreno-730", "mali-g610")
HEAD = ("kernel", "role", "instr", "cycles", "bound", "loads", "static", "regs", "occ", "spill",
        "scratch")  # fmt: skip


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
    """One table a layer, the cheapest case first; README.md says how to read it."""
    for layer in dict.fromkeys(row.case.layer.name for row in rows):
        mine = [row for row in rows if row.case.layer.name == layer]
        mine.sort(key=lambda row: (row.cycles is None, row.cycles))
        print(f"\n{mine[0].gpu}   {layer}   [a {mine[0].unit}]")
        print(markdown_table(HEAD, map(_cells, mine), texts=2))


def _cells(row: Row) -> list[str]:
    kernel, one = f"{row.case.kernel} {_text(row.case.parameters)}", row.statistics
    if one is None:
        reason = row.problem.strip().splitlines()[-1]
        return [kernel, row.case.role, f"FAILED: {reason}", *[""] * (len(HEAD) - 3)]
    static = (one.instructions, one.registers, one.occupancy, one.spills + one.fills, one.scratch)
    return [kernel, row.case.role, _number(row.instructions), _number(row.cycles), row.bound,
            _number(row.messages), *map(str, static)]  # fmt: skip


def _record(row: Row) -> dict[str, Any]:
    """A row of the results file."""
    case, one = row.case, row.statistics
    return {
        "gpu": row.gpu,
        "layer": case.layer.name,
        "kernel": case.kernel,
        "parameters": _text(case.parameters),
        "role": case.role,
        "unit": row.unit,
        "instructions_per_unit": row.instructions and round(row.instructions, 4),
        "cycles_per_unit": row.cycles and round(row.cycles, 4),
        "bound": row.bound,
        "loads_per_unit": row.messages and round(row.messages, 4),
        "static_instructions": one and one.instructions,
        "registers": one and one.registers,
        "occupancy": one and one.occupancy,
        "spills": one and one.spills,
        "fills": one and one.fills,
        "scratch": one and one.scratch,
        "problem": row.problem.strip(),
    }


def _write_json(path: Path, mesa: str, rows: Sequence[Row]) -> None:
    """One line a row, with the columns' names once."""
    records = [_record(row) for row in rows]
    columns = list(records[0]) if records else []
    document = {"compiler": f"Mesa {mesa}", "executed": False, "columns": columns}
    write_results(path, document | {"rows": [list(record.values()) for record in records]})


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
    head = ("GPU", "layer", "chosen", "instr", "cycles", "loads", "registers", "occ",
            "cheapest tried")  # fmt: skip
    cells = []
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
        cycles = f"{_number(row.cycles)} ({row.bound})"
        cells.append((row.gpu, layer, f"`{_short(row)}`", _number(row.instructions), cycles,
                      _number(row.messages), str(one.registers), str(one.occupancy),
                      beside))  # fmt: skip
    return f"""Compiled by Mesa {mesa}, executed nowhere. Instructions (Bifrost: tuples), cycles of
the busiest arithmetic unit (Adreno: issue slots) and loads for 32 binary MACs. All rows:
`benchmarks/results/mobile_isa.json`.

{markdown_table(head, cells, texts=3)}
"""


def _short(row: Row) -> str:
    values = dict(row.case.parameters)
    tile = "x".join(str(values[k]) for k in ("TILE_PIXELS", "TILE_FILTERS") if k in values)
    more = {"VECTOR_WORDS": f"v{values.get('VECTOR_WORDS')}", "COUNT": "carry-save"}
    more["ACCUMULATOR"] = "u16"
    extra = [mark for name, mark in more.items() if values.get(name)]
    return " ".join([row.case.kernel, tile, *extra]).strip()


def _report(rows: Sequence[Row]) -> int:
    judged = [row for row in rows if row.case.role]
    bad = [row for row in judged if row.is_bad]
    for row in bad:
        one, case = row.statistics, row.case
        what = row.problem.strip() or "no statistics"
        if one is not None:
            what = f"{one.spills} spills, {one.fills} fills, {one.scratch} accesses to scratch"
        kernel = f"{case.kernel} {_text(case.parameters)}"
        print(f"BAD ({case.role}): {row.gpu}, {case.layer.name}: {kernel}: {what}")
    print(f"\n{len(judged) - len(bad)} of {len(judged)} choices and defaults keep to registers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
