"""Everything in one testbed, within a budget of seconds.

    python -m benchmarks.coexec.all --gpu-cores 4 --cpu-cores 4 --isa avx2 --budget-s 900

Makes the device profile and runs all experiments; each writes its result as soon as it is there,
and one that fails leaves the others alone. Started again, it goes on with what is missing. Nothing
is downloaded; it runs from a source tree, too, with LightGBM installed.
"""

from __future__ import annotations

import sys

from benchmarks.coexec.experiment import add_run_arguments
from benchmarks.coexec.steps import ALL, run_steps
from benchmarks.coexec.testbed import add_arguments, from_options, run
from benchmarks.coexec.turns import Budget
from benchmarks.command_line import parser_of


def main() -> int:
    """Command line."""
    parser = parser_of(__doc__)
    add_arguments(parser)
    add_run_arguments(parser, budget_s=1800)
    options = parser.parse_args()
    failed = run_steps(
        ALL,
        from_options(options),
        Budget(options.budget_s),
        options.folder,
        options.json,
        options.smoke,
    )
    if failed:
        print(f"failed: {', '.join(failed)}; {options.json} has the reasons", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    run(main)
