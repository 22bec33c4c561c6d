"""A plan of the file is compared with either processor alone, in inferences like any other."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_runtime
from phonebit.format.reader import parse_contents
from phonebit.format.records import HEADER
from phonebit.format.writer import file_bytes
from phonebit.planner import ExecutionPlan, Processor, with_plan
from support.golden import golden_graph, integer_inputs
from support.opencl_device import device_name, pyopencl_device
from support.random_plans import whole_plan

GRAPH = golden_graph("tiny_classifier")
MAX_INFERENCES = 3000


@pytest.fixture
def cache(kernel_cache: str) -> str:
    """What was selected is kept there, too: each test that compares has a plan of its own."""
    return kernel_cache


class Files:
    """Files of one network, with plans for the device that there is."""

    def __init__(self, folder: Path, cache: str) -> None:
        self.device = f"{device_name(pyopencl_device())}+cpu"
        self.folder, self.cache = folder, cache
        self.contents = parse_contents(to_bytes(GRAPH, {}))
        self.inputs = list(integer_inputs(GRAPH, batch=1).values())
        self.plain = self.write("plain", self.contents)
        self.expected = self.forward(gpu_runtime().Network(self.plain, device="cpu"))

    def write(self, name: str, contents: Any) -> Path:
        path = self.folder / f"{name}.pbit"
        path.write_bytes(file_bytes(contents))
        return path

    def load(self, in_file: ExecutionPlan | None, version: float = 0.0, **options: Any) -> Any:
        """The network with this plan in its file; each version is a file of its own."""
        options = {"threads": 1, "cache_directory": self.cache, "device": self.device} | options
        key = gpu_runtime().Network(self.plain, **options).plan_key
        contents = self.contents
        if in_file is not None:
            contents = with_plan(contents, replace(in_file, device=key, predicted_ms=version))
        self.planned = self.write("planned", contents)
        return gpu_runtime().Network(self.planned, **options)

    def forward(self, network: Any) -> list[np.ndarray[Any, Any]]:
        return list(network.forward(self.inputs))

    def is_right(self, network: Any) -> bool:
        results = self.forward(network)
        return all(map(np.array_equal, results, self.expected))


@pytest.fixture
def files(tmp_path: Path, cache: str) -> Files:
    return Files(tmp_path, cache)


def by_turns(files: Files) -> ExecutionPlan:
    """The processors wait for each other at every layer."""
    whole = whole_plan(files.contents, Processor.GPU)
    parts = [
        replace(part, stage=part.layer, processor=Processor(part.layer % 2)) for part in whole.parts
    ]
    return replace(whole, parts=tuple(parts))


def test_the_fastest_runs_what_comes_after(files: Files) -> None:
    network = files.load(by_turns(files), 1.0)
    assert network.coexec["is_on_trial"]
    memory = [network.memory["weight_bytes"]]
    while network.coexec["is_on_trial"] and len(memory) < MAX_INFERENCES:
        assert files.is_right(network)
        memory.append(network.memory["weight_bytes"])
    found = network.coexec
    assert 6 <= len(memory) < MAX_INFERENCES
    assert min(found[name] for name in ("plan_ms", "cpu_ms", "gpu_ms")) > 0
    lost = [found["is_on_cpu_alone"], found["is_on_gpu_alone"]]
    assert lost != [True, True]
    assert any("does everything from now on" in note for note in network.warnings) == any(lost)
    assert memory[-1] < max(memory)
    assert files.is_right(network)
    assert network.coexec == found
    # The plan stays what it was, for those who ask.
    assert len(network.plan[3]) == len(files.contents.ops)
    for tensor, values in network.activations(files.inputs).items():
        assert values.size, tensor


def end_comparison(files: Files, network: Any) -> int:
    """Ends auto-selection, with right results; returns the maximum bytes of weights meanwhile."""
    maximum, inferences = 0, 0
    while network.coexec["is_on_trial"]:
        maximum = max(maximum, network.memory["weight_bytes"])
        assert files.is_right(network)
        inferences += 1
        assert inferences < MAX_INFERENCES
    return maximum


def test_two_candidates_at_a_time_take_memory(files: Files) -> None:
    plan = by_turns(files)
    alone = [
        files.load(whole_plan(files.contents, side), trial=False).memory["weight_bytes"]
        for side in Processor
    ]
    both = files.load(plan, trial=False).memory["weight_bytes"]
    maximum = end_comparison(files, files.load(plan, 2.0))
    assert maximum <= max(both + max(alone), sum(alone))
    assert maximum < both + sum(alone)


def test_what_was_selected_is_kept(files: Files) -> None:
    plan = by_turns(files)
    first = files.load(plan, 3.0)
    end_comparison(files, first)
    again = files.load(plan, 3.0)
    assert again.coexec == first.coexec
    assert again.memory["weight_bytes"] == first.memory["weight_bytes"]
    assert files.is_right(again)
    # It is of this file, and of how the processors share; `trial=False` follows the plan.
    assert files.load(plan, 4.0).coexec["is_on_trial"]
    assert files.load(plan, 3.0, sharing="copy").coexec["is_on_trial"]
    followed = files.load(plan, 3.0, trial=False).coexec
    assert not any(followed[name] for name in ("is_on_trial", "is_on_cpu_alone", "is_on_gpu_alone"))
    assert followed["plan_ms"] == 0


KEPT = struct.Struct("<8sIIQQ")  # runtime/gpu/binary_store.cpp: magic, version, CRC, two sizes
SELECTION = struct.Struct("<i4x3d")  # coexec/auto_selection.cpp: the fastest, milliseconds of all


def keep_selection(files: Files, fastest: int, times: tuple[float, float, float]) -> None:
    """Rewrites what was kept for the file loaded last; other processes keep theirs next to it."""
    content = files.planned.read_bytes()
    crc = int(np.frombuffer(content, HEADER, 1)[0]["crc32"])
    of_file = f"\n{crc:08x} {len(content)} ".encode()
    [path] = (path for path in Path(files.cache).glob("*.clbin") if of_file in path.read_bytes())
    magic, version, _, key_bytes, size = KEPT.unpack_from(kept := path.read_bytes())
    assert size == SELECTION.size
    rest = kept[16 : KEPT.size + key_bytes] + SELECTION.pack(fastest, *times)
    path.write_bytes(KEPT.pack(magic, version, zlib.crc32(rest), 0, 0)[:16] + rest)


@pytest.mark.parametrize("fastest", [0, 1, 2], ids=["plan", "cpu", "gpu"])
def test_who_became_slow_is_compared_again(files: Files, fastest: int) -> None:
    plan, version = by_turns(files), 10.0 + fastest
    end_comparison(files, files.load(plan, version))
    # Slower from the first inference on than the others once were.
    keep_selection(files, fastest, (1e-6, 1e-6, 1e-6))
    network = files.load(plan, version)
    alone = [network.coexec["is_on_cpu_alone"], network.coexec["is_on_gpu_alone"]]
    assert alone == [fastest == 1, fastest == 2]
    for _ in range(8):
        assert not network.coexec["is_on_trial"]
        assert files.is_right(network)
    assert network.coexec["is_on_trial"]
    end_comparison(files, network)
    found = network.coexec
    assert min(found[name] for name in ("plan_ms", "cpu_ms", "gpu_ms")) > 1e-6
    lost = any("does everything from now on" in note for note in network.warnings)
    assert lost == (found["is_on_cpu_alone"] or found["is_on_gpu_alone"])
    # What the plan lost later is not kept.
    again = files.load(plan, version).coexec
    assert again["plan_ms"] == (1e-6 if lost else found["plan_ms"])


def test_a_plan_for_the_cpu_alone_is_compared_with_the_gpu(files: Files) -> None:
    network = files.load(whole_plan(files.contents, Processor.CPU))
    assert network.coexec["is_on_trial"]
    assert network.coexec["is_on_cpu_alone"]
    for _ in range(MAX_INFERENCES):
        assert files.is_right(network)
        if not network.coexec["is_on_trial"]:
            break
    found = network.coexec
    assert found["plan_ms"] == 0
    assert min(found["gpu_ms"], found["cpu_ms"]) > 0
    assert found["is_on_cpu_alone"] != found["is_on_gpu_alone"]


def test_batches_and_layers_are_right_meanwhile(files: Files) -> None:
    network = files.load(by_turns(files), 5.0)
    batch = [np.concatenate([x] * 3) for x in files.inputs]
    for _ in range(8):
        for got, expected in zip(network.forward(batch), files.expected, strict=True):
            np.testing.assert_array_equal(got, np.concatenate([expected] * 3))
    assert len(network.profile(files.inputs, 1)) == len(files.contents.ops)


def test_nothing_is_compared_where_that_is_off(files: Files) -> None:
    assert not files.load(by_turns(files), trial=False).coexec["is_on_trial"]


def test_a_plan_is_compared_in_every_precision_by_itself(files: Files) -> None:
    """What was found in one precision is not taken for another."""
    for precision in ("exact", "f16", "fast"):
        network = files.load(by_turns(files), precision=precision)
        assert network.coexec["is_on_trial"]
        for _ in range(MAX_INFERENCES):
            if not network.coexec["is_on_trial"]:
                break
            network.forward(files.inputs)
        found = network.coexec
        assert not found["is_on_trial"]
        assert min(found["cpu_ms"], found["plan_ms"]) > 0


def test_a_plan_that_is_given_is_followed(files: Files) -> None:
    plan = by_turns(files)
    assert not files.load(plan, plan=plan.as_tuple()).coexec["is_on_trial"]
    assert not files.load(None).coexec["is_on_trial"]
