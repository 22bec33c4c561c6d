"""Energy per frame, PhoneBit's table IV redone: mW, mJ/frame and FPS/W of whole networks.

Binary networks run through PhoneBit, their float twins through PyTorch (cuDNN in f16 on a GPU)
with the same meter; arrays go in and out on the host. Each row takes 15 to 20 seconds, in a process
of its own (``--row``, with what is measured as a JSON object), so that no engine warms a GPU for
another; needs the extra phonebit[energy], and PyTorch for the twins.

    python -m benchmarks.energy.table_iv --device gpu --json benchmarks/results/energy.json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import phonebit
from benchmarks.command_line import ProcessError, parser_of, row_of_process
from benchmarks.energy.document import notes, table
from benchmarks.records import run_context, write_results
from phonebit import energy
from phonebit.energy.nvml import find_nvml, matching_gpu
from phonebit.models.networks import NETWORKS as DEFINITIONS
from phonebit.models.networks import build
from phonebit.network.random_inputs import random_inputs

NETWORKS = ("alexnet", "yolov2_tiny", "vgg16", "birealnet18", "quicknet")
ROW_TIMEOUT_S = 300.0


def _phonebit(row: Namespace) -> dict[str, Any]:
    """The binary network."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{row.network}.pbit"
        build(row.network, file)
        network = phonebit.Network.load(file, device=row.device, precision=row.precision)
    inputs = random_inputs(network.inputs, row.batch)
    return {
        "form": "binary",
        "served_by": network.device,
        "version": phonebit.__version__,
        "energy": _document(lambda: energy.measure(network, inputs, row.seconds)),
    }


def _torch(row: Namespace) -> dict[str, Any]:
    """The float twin on the first CUDA device, or on the CPU if the row's device is one."""
    import torch

    from benchmarks.peers.formats.torch_format import FloatNetwork
    from benchmarks.peers.workers.torch_gpu_worker import Torch

    on_cpu = row.device.startswith("cpu")
    precision, device = ("f32", "cpu") if on_cpu else ("f16", "cuda:0")
    twin = DEFINITIONS[row.network]("float")
    engine = Torch(FloatNetwork(twin).eval(), device, precision)
    shape = (row.batch, *twin.types[twin.inputs[0]].shape)
    engine.prepare(np.random.default_rng(0).integers(0, 256, shape, np.uint8))

    def measured() -> energy.EnergyResult:
        source, chosen = _source_of_torch(None if on_cpu else torch.cuda)
        meter = energy.EnergyMeter(source, row.seconds, chosen=chosen)
        return meter.measure(engine.forward, row.batch)

    return {
        "form": "float",
        "precision": precision,
        "served_by": "cpu" if on_cpu else torch.cuda.get_device_name(0),
        "version": torch.__version__,
        "energy": _document(measured),
    }


def _source_of_torch(cuda: Any) -> tuple[energy.EnergySource, str]:
    """The source of PyTorch's device, as for PhoneBit's."""
    if cuda is None:
        return energy.choose_source("cpu", energy.discover(), "auto")
    facts = cuda.get_device_properties(0)
    address = None
    if hasattr(facts, "pci_bus_id"):
        address = (facts.pci_domain_id, facts.pci_bus_id, facts.pci_device_id)
    found = matching_gpu(find_nvml(), facts.name, address, 0)
    if found is None:
        raise energy.NoSourceError(facts.name, {"nvml": "no GPU of this name or PCI address"})
    return found


def _document(measured: Callable[[], energy.EnergyResult]) -> dict[str, Any]:
    try:
        return measured().to_dict()
    except energy.EnergyError as error:
        return {"measured": False, "reason": str(error)}


def measured(row: dict[str, Any]) -> dict[str, Any]:
    """A row, measured in a process of its own; one that fails says why."""
    module, text = "benchmarks.energy.table_iv", json.dumps(row)
    try:
        return row_of_process(module, "--row", text, timeout_s=ROW_TIMEOUT_S)
    except ProcessError as error:
        return {**row, "energy": {"measured": False, "reason": str(error)}}


def main() -> int:
    """Measures all rows; exit code 1 if one could not be measured."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="auto", help="of PhoneBit: cpu, gpu, gpu:1, ...")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3.0, help="least length of a window")
    parser.add_argument("--no-twin", action="store_true", help="without PyTorch's float twins")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument("--row", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        run = _phonebit if options.row["engine"] == "phonebit" else _torch
        print(json.dumps({**options.row, **run(Namespace(**options.row))}))
        return 0
    document: dict[str, Any] = {"context": run_context(options.device), "command": sys.argv[1:]}
    document["rows"] = rows = []
    shared = {"batch": 1, "device": options.device, "precision": "exact"}
    for network in options.networks:
        for engine in ("phonebit",) if options.no_twin else ("phonebit", "torch"):
            print(f"{network}, {engine}", flush=True)
            row = {"network": network, "engine": engine, "seconds": options.seconds, **shared}
            rows.append(measured(row))
            if options.json:  # after each row: what was measured is not lost with what follows
                write_results(options.json, document)
    print(table(rows), *notes(rows), sep="\n")
    return 0 if all(row["energy"]["measured"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
