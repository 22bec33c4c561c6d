"""Compiles the OpenCL programs of all experiments beforehand, on all cores of the machine.

    python -m benchmarks.coexec.warm_up --gpu-cores 4 --cpu-cores 4 --isa avx2 --budget-s 120

Programs are made for their layers and kept in PhoneBit's cache; in a testbed a few cores would have
to compile them, one after the other, out of the budget of the measurements. What is not compiled
when the time is over is compiled when it is needed.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.coexec.experiment import SEED, add_run_arguments, networks_folder
from benchmarks.coexec.layer_cases import draw
from benchmarks.coexec.layer_files import write_layer
from benchmarks.coexec.networks import NETWORKS, network_file
from benchmarks.coexec.testbed import add_arguments, all_cores, from_options, pocl_device
from benchmarks.command_line import parser_of
from phonebit import PhoneBitError
from phonebit.devices.loading import EngineOptions
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.engines import open_measuring_engine
from phonebit.planner.measure.measuring import measure_parts
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.measure.sampling import sample_layers
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stages import Placement, cut_in_two

SAMPLES: Final = 300
CASES: Final = 60
SMOKE: Final = 4
"""Samples, and cases, in place of those."""

CUT: Final = 32
"""Channels; one program serves every cut."""

Task = tuple[str, int]


def tasks(smoke: bool) -> Iterator[Task]:
    """What to compile: the long tasks first, then what is needed first."""
    yield from (("network", number) for number in range(0 if smoke else len(NETWORKS)))
    yield from (("sample", number) for number in range(SMOKE if smoke else SAMPLES))
    yield from (("case", number) for number in range(SMOKE if smoke else CASES))


def warm(task: Task, networks: Path) -> str:
    """Does a task in this process: every layer once as a whole, once cut between channels.

    Returns:
        Why it failed; empty if it did not.
    """
    kind, number = task
    try:
        if kind == "network":
            compile_programs(network_file(networks, NETWORKS[number], "exact"))
        elif kind == "case":
            compile_programs(write_layer(next(islice(draw(SEED), number, None)), networks)[0])
        else:
            layer = next(islice(sample_layers(SEED), number, None))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "layer.pbit"
                path.write_bytes(file_bytes(layer_file(layer, SEED)[0]))
                compile_programs(path)
    except PhoneBitError as error:
        return f"{kind} {number}: {error}"
    return ""


def compile_programs(path: Path) -> None:
    """Has the programs of a file built, those that serve cuts between channels among them."""
    options = EngineOptions(threads=1, synchronization="events")  # polling needs cores of its own
    engine = open_measuring_engine(path, f"{pocl_device()}+cpu", options)
    for layer in NetworkGraph.of(read_contents(path)).layers:
        measure_parts(engine, layer.index, None, layer.whole, repeats=1)
        if layer.can_cut_channels and layer.shape[2] > CUT:
            (parts,) = cut_in_two(layer, Placement.CHANNELS, CUT).parts
            measure_parts(engine, layer.index, parts.cpu, parts.gpu, repeats=1)


def main() -> int:
    """Command line."""
    parser = parser_of(__doc__)
    add_arguments(parser)
    add_run_arguments(parser, budget_s=120)
    options = parser.parse_args()
    testbed = from_options(options)
    threads = str(testbed.gpu_cores)
    os.environ |= {"POCL_MAX_PTHREAD_COUNT": threads, "POCL_CPU_MAX_CU_COUNT": threads}
    networks = networks_folder(options.folder)
    workers = len(all_cores())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(warm, task, networks) for task in tasks(options.smoke)]
        done, late = wait(futures, timeout=options.budget_s)
        pool.shutdown(wait=True, cancel_futures=True)
    for reason in filter(None, (future.result() for future in done)):
        print(reason, file=sys.stderr)
    print(f"{len(done)} of {len(done) + len(late)} files compiled by {workers} processes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
