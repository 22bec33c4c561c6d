#!/usr/bin/env python3
"""OpenCL kernels as machine code of Adreno and Mali GPUs that are not at hand.

Mesa's compilers translate every kernel for the layers in cases.json, with the parameters that
bnn_kernels/tuning.table chooses and with others; the runtime makes the programs, on PoCL. README.md
says how to read the numbers; nothing is executed, and nothing here is a measurement.

    benchmarks/mobile_isa/setup.sh ~/mobile_isa
    python -m benchmarks.mobile_isa.mobile_isa --isa ~/mobile_isa --check
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.command_line import parser_of
from benchmarks.markdown import markdown_table
from benchmarks.mobile_isa.compiler import GPUS, mesa_version
from benchmarks.mobile_isa.document import is_bad
from benchmarks.mobile_isa.judge import cases, compiled, programs_of
from benchmarks.records import Record, run_context, write_results

REPRESENTATIVES = ("adreno-730", "mali-g610")


def main() -> int:
    """Returns 1 when --check finds a choice that spills or uses scratch memory."""
    arguments = _arguments()
    if arguments.logs:
        arguments.logs.mkdir(parents=True, exist_ok=True)

    wanted = {
        name: programs_of(
            case
            for case in cases(GPUS[name])
            if (case.role or (name in arguments.try_on and not arguments.check))
            and re.search(arguments.kernels, case.choice.kernel)
            and re.search(arguments.layers, case.layer)
        )
        for name in arguments.gpus
    }

    def judge(name: str) -> list[Record]:
        log = arguments.logs / f"{name}.log" if arguments.logs else None
        return compiled(arguments.isa, GPUS[name], wanted[name], log)

    records: list[Record] = []
    with ThreadPoolExecutor(2) as pool:
        try:
            for found in pool.map(judge, arguments.gpus):
                records += found
                _print(found)
        except RuntimeError as error:
            sys.exit(f"mobile_isa: {error}")
    if arguments.json and records:
        context = run_context()
        facts = {"compiler": f"Mesa {mesa_version(arguments.isa)}", "executed": False}
        facts |= {"commit": context["commit"], "date": context["date"]}
        table = {"columns": [*records[0]], "rows": [[*record.values()] for record in records]}
        write_results(arguments.json, facts | table)
    return _report(records) if arguments.check else 0


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
    parser.add_argument("--check", action="store_true", help="judge choices and defaults only")
    parser.add_argument("--json", type=Path, help="also write all rows to this file")
    parser.add_argument("--logs", type=Path, help="keep the compilers' output in this folder")
    return parser.parse_args()


def _print(records: Sequence[Record]) -> None:
    """One table a layer, the cheapest case first; README.md says how to read it."""
    for layer in dict.fromkeys(record["layer"] for record in records):
        own = [record for record in records if record["layer"] == layer]
        own.sort(key=lambda record: (record["cycles_per_unit"] is None, record["cycles_per_unit"]))
        columns = [name for name in own[0] if name not in ("gpu", "layer")]
        rows = [[_cell(record[name]) for name in columns] for record in own]
        print(f"\n{own[0]['gpu']}   {layer}")
        print(markdown_table(columns, rows, texts=4), flush=True)


def _cell(value: str | float | None) -> str:
    """The last line of a text."""
    return "-" if value is None else (str(value).splitlines() or [""])[-1]


def _report(records: Sequence[Record]) -> int:
    judged = [record for record in records if record["role"]]
    bad = [record for record in judged if is_bad(record)]
    for record in bad:
        where = "BAD ({role}): {gpu}, {layer}: {kernel} {parameters}".format(**record)
        moved = "{spills} spills, {fills} fills, {scratch} accesses to scratch".format(**record)
        print(f"{where}: {record['problem'] or moved}")
    print(f"\n{len(judged) - len(bad)} of {len(judged)} choices and defaults keep to registers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
