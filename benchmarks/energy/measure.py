"""One row of the energy table, in a process of its own: so no engine warms a GPU for another.

    python -m benchmarks.energy.measure ROW

ROW is a JSON object, the fields of ``Row``; the last line of stdout is the result, an object, too.
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import phonebit
from phonebit import energy
from phonebit.energy.nvml import find_nvml, matching_gpu
from phonebit.models.networks import NETWORKS, build
from phonebit.network.random_inputs import random_inputs

Row = Namespace
"""What is measured: options of ``table_iv``, ``network``, ``batch`` and ``engine``.

"phonebit" runs the binary network, "torch" its float twin: on the first CUDA device, or on the CPU
if ``device`` is one.
"""


def measure_row(row: Row) -> dict[str, Any]:
    """The row's fields, and what was measured."""
    run = _phonebit if row.engine == "phonebit" else _torch
    return {**vars(row), **run(row)}


def _phonebit(row: Row) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{row.network}.pbit"
        build(row.network, file, float_weights=row.float_weights)
        network = phonebit.Network.load(file, device=row.device, precision=row.precision)
    inputs = random_inputs(network.inputs, row.batch)

    def measured() -> energy.EnergyResult:
        return energy.measure(network, inputs, row.seconds, source=row.source)

    return {
        "form": "binary",
        "served_by": network.device,
        "version": phonebit.__version__,
        "energy": _document(measured),
    }


def _torch(row: Row) -> dict[str, Any]:
    import torch

    from benchmarks.peers.formats.torch_format import FloatNetwork
    from benchmarks.peers.workers.torch_gpu_worker import Torch

    on_cpu = row.device.startswith("cpu")
    precision, device = ("f32", "cpu") if on_cpu else ("f16", "cuda:0")
    twin = NETWORKS[row.network]("float")
    engine = Torch(FloatNetwork(twin).eval(), device, precision)
    shape = (row.batch, *twin.types[twin.inputs[0]].shape)
    engine.prepare(np.random.default_rng(0).integers(0, 256, shape, np.uint8))

    def measured() -> energy.EnergyResult:
        source, chosen = _source_of_torch(row, None if on_cpu else torch.cuda)
        meter = energy.EnergyMeter(source, row.seconds, chosen=chosen)
        return meter.measure(engine.forward, row.batch)

    name = "cpu" if on_cpu else torch.cuda.get_device_name(0)
    return {
        "form": "float",
        "precision": precision,
        "served_by": name,
        "version": torch.__version__,
        "energy": _document(measured),
    }


def _source_of_torch(row: Row, cuda: Any) -> tuple[energy.EnergySource, str]:
    """The source of PyTorch's device, as for PhoneBit's."""
    if cuda is None or row.source != "auto":
        return energy.choose_source("cpu", energy.discover(), row.source)
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


if __name__ == "__main__":
    print(json.dumps(measure_row(Row(**json.loads(sys.argv[1])))))
