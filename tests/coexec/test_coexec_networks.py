"""A GPU and the CPU on one network: every plan gives the bits of the CPU alone.

The device is any OpenCL device, PoCL included; the ways of sharing and waiting that it lacks are
left out. Its mappings are those of support/mapping_opencl.cpp, unless a platform is named.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_devices, gpu_runtime
from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.reader import parse_contents
from phonebit.format.writer import file_bytes
from phonebit.planner import ExecutionPlan, Processor
from phonebit.planner.measure.measuring import PROBE
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.planning_files import plan as plan_file
from phonebit.planner.predict.profile import write_profile
from support.golden import golden_graphs, integer_inputs
from support.made_up_profile import made_up_profile
from support.opencl_device import check_warnings, device_name, pyopencl_device
from support.opencl_library import mapping_library
from support.planner_times import residual
from support.random_plans import halves_plan, random_plan, whole_plan

_runtime = gpu_runtime()
CPU, GPU = Processor.CPU, Processor.GPU

SHARINGS = ("svm", "map", "copy")
SYNCHRONIZATIONS = ("polling", "events", "user_events")
WAYS = tuple(product(SHARINGS, SYNCHRONIZATIONS))
GRAPHS = golden_graphs()

# One graph of a kind, for random plans. tests/conformance cuts each operator in the middle.
NAMES = (
    "binary_conv_groups3_93_33",
    "binary_conv_threshold_33_31_pad-1",
    "binary_conv_threshold_64_64_pad0",
    "binary_depthwise_70_pad0",
    "binary_planes_33",
    "byte_weights",
    "float_layers",
    "half_weights",
    "log_softmax",
    "pooled_bits_33",
    "residual_block_64",
    "rounded_31",
    "selected_channels",
    "tiny_classifier",
    "two_slopes_31",
    "u8_first_layer_1_33",
)


def in_pairs(names: Sequence[str]) -> list[Any]:
    """Three networks with all ways; each two of network, sharing and synchronization meet in nine
    cases, and the others are slow."""
    return [
        pytest.param(
            names[n], SHARINGS[i], SYNCHRONIZATIONS[k],
            marks=() if (n + i + k) % 3 == 0 else pytest.mark.slow,
        )
        for n, i, k in product(range(3), repeat=3)
    ]  # fmt: skip


def has(sharing: str, synchronization: str = "events") -> bool:
    """Whether the device has this way of sharing and waiting."""
    needed = {"svm_fine"} if sharing == "svm" else set()
    needed |= {"svm_fine", "svm_atomics"} if synchronization == "polling" else set()
    used = pyopencl_device().int_ptr
    (known,) = (device for device in gpu_devices() if device.id == used)
    return all(known.capabilities[name] for name in needed)


def need(sharing: str, synchronization: str = "events") -> None:
    """Skips a test of one way where the device does not have it."""
    if not has(sharing, synchronization):
        pytest.skip(f"no fine-grained shared virtual memory for {sharing}, {synchronization}")


WAYS_HERE = st.deferred(lambda: st.sampled_from([way for way in WAYS if has(*way)]))
"""What a property may draw: a skip would end all its examples."""


@pytest.fixture(scope="module")
def device() -> str:
    return f"{device_name(pyopencl_device())}+cpu"


@pytest.fixture(name="cache", scope="module")
def _cache(kernel_cache: str) -> str:
    return kernel_cache


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


class Pair:
    """Networks of one graph: on the CPU, and on both with any plan."""

    def __init__(self, name: str, folder: Path, device: str, cache: str) -> None:
        self._load(parse_contents(to_bytes(GRAPHS[name], {})), folder / f"{name}.pbit")
        self.device, self.cache = device, cache
        self.inputs = list(integer_inputs(GRAPHS[name], batch=2).values())

    @classmethod
    def of(cls, contents: FileContents, path: Path, device: str, cache: str) -> Pair:
        """Of a file, with small integers as inputs."""
        pair = cls.__new__(cls)
        pair._load(contents, path)
        pair.device, pair.cache = device, cache
        random = np.random.default_rng(0)
        pair.inputs = [
            random.integers(-3, 4, (2, *info.shape)).astype(np.float32)
            for info in pair.alone.inputs
        ]
        return pair

    def _load(self, contents: FileContents, path: Path) -> None:
        self.path, self.contents = path, contents
        path.write_bytes(file_bytes(contents))
        self.alone = _runtime.Network(path, device="cpu")

    def load(
        self,
        plan: ExecutionPlan,
        sharing: str = "auto",
        synchronization: str = "auto",
        tuning: str = "",
        precision: str = "exact",
    ) -> Any:
        return _runtime.Network(
            self.path,
            device=self.device,
            threads=1,
            cache_directory=self.cache,
            plan=plan.as_tuple(),
            sharing=sharing,
            synchronization=synchronization,
            tuning=tuning,
            precision=precision,
        )

    def check(self, network: Any) -> None:
        activations = network.activations(self.inputs)
        for tensor, expected in self.alone.activations(self.inputs).items():
            np.testing.assert_array_equal(activations[tensor], expected, err_msg=tensor)
        results = network.forward(self.inputs)
        for got, expected in zip(results, self.alone.forward(self.inputs), strict=True):
            np.testing.assert_array_equal(got, expected)
        check_warnings(network.warnings)


def halves(pair: Pair, by_rows: bool) -> ExecutionPlan:
    return halves_plan(pair.contents, by_rows)


@pytest.mark.parametrize(
    ("name", "sharing", "synchronization"),
    in_pairs(("tiny_classifier", "residual_block_64", "float_layers")),
)
def test_ways_of_sharing_and_waiting(
    name: str, sharing: str, synchronization: str, device: str, cache: str, tmp_path: Path
) -> None:
    need(sharing, synchronization)
    pair = Pair(name, tmp_path, device, cache)
    seed = WAYS.index((sharing, synchronization))
    plan = random_plan(pair.contents, np.random.default_rng(seed))
    pair.check(pair.load(plan, sharing, synchronization))
    for by_rows in (True, False):
        pair.check(pair.load(halves(pair, by_rows), sharing, synchronization))


@pytest.mark.parametrize("turns", [1, 2], ids=["gpu", "by turns"])
def test_what_one_processor_writes_is_mapped_once(
    turns: int, device: str, cache: str, tmp_path: Path
) -> None:
    """In a chain of layers nothing is copied: the input, what crosses over, and the output."""
    library = mapping_library()
    if library is None:
        pytest.skip("mappings are the driver's own (PHONEBIT_TEST_MAPPING, or no C++ compiler)")
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    plan = whole_plan(pair.contents, GPU)
    parts = [
        replace(part, stage=part.layer, processor=(GPU, CPU)[part.layer % turns])
        for part in plan.parts
    ]
    crossings = sum(one.processor != two.processor for one, two in pairwise(parts))
    crossings += 1 + (parts[-1].processor == GPU)
    network = pair.load(replace(plan, parts=tuple(parts)), "map")
    pair.check(network)
    before = library.count_mappings()
    network.forward(pair.inputs)
    assert library.count_mappings() - before == 2 * crossings


# Largest difference from exact floats, relative to the largest value of their tensor. Halves have
# 11 bits and a few layers in a row round; of bytes, half a step of 127 counts in some layers.
ROUNDING = {"float_layers": 2**-10, "residual_block_64": 2**-10, "half_weights": 2 / 127}


@pytest.mark.parametrize(("name", "sharing", "synchronization"), in_pairs(tuple(ROUNDING)))
def test_each_processor_computes_in_its_own_types(
    name: str, sharing: str, synchronization: str, device: str, cache: str, tmp_path: Path
) -> None:
    """Precision "fast": halves where the GPU is, 8-bit integers on the CPU, and nearly the same."""
    need(sharing, synchronization)
    pair = Pair(name, tmp_path, device, cache)
    way = {"sharing": sharing, "synchronization": synchronization, "precision": "fast"}
    exact = pair.alone.activations(pair.inputs)
    for by_rows in (True, False):
        network = pair.load(halves(pair, by_rows), **way)
        for tensor, got in network.activations(pair.inputs).items():
            if got.dtype == np.float32:
                tolerance = ROUNDING[name] * float(np.abs(exact[tensor]).max())
                np.testing.assert_allclose(got, exact[tensor], rtol=0, atol=tolerance)
        first, second = (network.forward(pair.inputs) for _ in range(2))
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)
    for processor, alone in ((GPU, device.partition("+")[0]), (CPU, "cpu")):
        one = _runtime.Network(pair.path, device=alone, cache_directory=cache, precision="fast")
        both = pair.load(whole_plan(pair.contents, processor), **way)
        activations = both.activations(pair.inputs)
        for tensor, expected in one.activations(pair.inputs).items():
            np.testing.assert_array_equal(activations[tensor], expected, tensor)


def test_lower_precision_halves_what_the_gpu_stores(
    device: str, cache: str, tmp_path: Path
) -> None:
    """Floats of inputs and outputs stay; kernels of the CPU change where the file permits it."""
    pair = Pair("half_weights", tmp_path, device, cache)
    both = {"exact": 0, "fast": 0}  # with inputs and outputs, as often as the processors have them
    alone = dict(both)
    for precision in both:
        network = pair.load(whole_plan(pair.contents, GPU), precision=precision)
        both[precision] = network.memory["arena_bytes"]
        options = {"cache_directory": cache, "precision": precision}
        gpu = _runtime.Network(pair.path, device=device.partition("+")[0], **options)
        alone[precision] = gpu.memory["arena_bytes"]
    assert 0 < alone["fast"] <= 0.6 * alone["exact"]
    assert both["exact"] - both["fast"] >= 0.4 * alone["exact"]
    shared = [
        pair.load(halves(pair, False), precision=precision).memory["arena_bytes"]
        for precision in both
    ]
    assert shared[1] <= shared[0]  # what both use is never stored twice
    kernels = [
        [layer.kernel for layer in pair.load(halves(pair, False), precision=precision).layers]
        for precision in ("exact", "fast")
    ]
    assert [("i8" in exact, "i8" in fast) for exact, fast in zip(*kernels, strict=True)].count(
        (False, True)
    ) >= 2


@settings(max_examples=20)
@given(
    st.sampled_from([name for name in NAMES if name not in (*ROUNDING, "byte_weights")]),
    st.integers(0, 2**32 - 1),
    WAYS_HERE,
    st.sampled_from(("f16", "fast")),
)
def test_binary_layers_are_exact_in_lower_precision(
    device: str,
    cache: str,
    folder: Path,
    name: str,
    seed: int,
    way: tuple[str, str],
    precision: str,
) -> None:
    """Networks whose float values are small integers, which halves and bytes hold exactly."""
    pair = Pair(name, folder, device, cache)
    plan = random_plan(pair.contents, np.random.default_rng(seed))
    pair.check(pair.load(plan, *way, precision=precision))


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(0, 2**32 - 1), WAYS_HERE)
def test_random_plans(
    device: str, cache: str, folder: Path, name: str, seed: int, way: tuple[str, str]
) -> None:
    pair = Pair(name, folder, device, cache)
    plan = random_plan(pair.contents, np.random.default_rng(seed))
    pair.check(pair.load(plan, *way))


@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "channels"])
def test_memory_is_shared_over_time(by_rows: bool, device: str, cache: str, tmp_path: Path) -> None:
    """A plan that cuts every layer takes at most 1.5 times the activations of one processor.

    The GPU has inputs and outputs besides its arena.
    """
    need("svm")
    pair = Pair.of(residual(6), tmp_path / "residual.pbit", device, cache)
    gpu = _runtime.Network(pair.path, device=device.partition("+")[0], cache_directory=cache)
    network = pair.load(halves(pair, by_rows), "svm")
    terminals = sum(tensor.nbytes for tensor in [*pair.inputs, *gpu.forward(pair.inputs)]) // 2
    assert network.memory["arena_bytes"] <= 1.5 * (terminals + gpu.memory["arena_bytes"])
    pair.check(network)


@pytest.mark.parametrize(("sharing", "maximum"), [("svm", 2.2), ("map", 2.25), ("copy", 2.25)])
def test_memory_is_shared_over_the_layers_of_a_chain(
    sharing: str, maximum: float, device: str, cache: str, tmp_path: Path
) -> None:
    """Each processor computes all rows but those of the last layer: as if it were alone.

    What both write is one memory where that is shared virtual memory.
    """
    need(sharing)
    pair = Pair.of(residual(12), tmp_path / "residual.pbit", device, cache)
    gpu = _runtime.Network(pair.path, device=device.partition("+")[0], cache_directory=cache)
    *before, last = whole_plan(pair.contents, GPU).parts
    pool, row = before.pop(), last.part.row_end // 2
    chain = [replace(part, stage=0, processor=side) for part in before for side in (GPU, CPU)]
    for end in (pool, last):
        cuts = end.part._replace(row_end=row), end.part._replace(row_begin=row)
        for side, cut in zip((GPU, CPU), cuts, strict=True):
            chain.append(replace(end, stage=0, processor=side, part=cut))
    network = pair.load(ExecutionPlan("test", "user", 0.0, tuple(chain)), sharing)
    terminals = sum(tensor.nbytes for tensor in [*pair.inputs, *gpu.forward(pair.inputs)]) // 2
    assert network.memory["arena_bytes"] <= maximum * (terminals + gpu.memory["arena_bytes"])
    pair.check(network)


def test_layers_run_alone(device: str, cache: str, tmp_path: Path) -> None:
    pair = Pair("residual_block_64", tmp_path, device, cache)
    network = pair.load(halves(pair, by_rows=True))
    tensors = pair.alone.activations(pair.inputs)
    tensors |= {info.name: x for info, x in zip(pair.alone.inputs, pair.inputs, strict=True)}
    for index, layer in enumerate(network.layers):
        operands = [tensors[name] for name in layer.inputs]
        for name, got in network.run_op(index, operands).items():
            np.testing.assert_array_equal(got, tensors[name], err_msg=f"{layer.name}: {name}")


def test_the_profile_has_a_time_for_each_layer_and_reports_name_both_kernels(
    device: str, cache: str, tmp_path: Path
) -> None:
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    network = pair.load(halves(pair, by_rows=False))
    assert all(ms > 0 for ms in network.profile(pair.inputs, repeats=3))
    cut = [layer.kernel for layer in network.layers if " + cpu " in layer.kernel]
    assert cut and all(kernel.startswith("gpu ") for kernel in cut)
    assert "gpu" in network.device and "cpu:" in network.device


def test_a_layer_is_measured_with_any_parts(device: str, cache: str, tmp_path: Path) -> None:
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    network = pair.load(whole_plan(pair.contents, GPU))
    (index,) = (i for i, layer in enumerate(network.layers) if layer.name == "conv2")
    height, _, channels = (14, 14, 64)
    whole = (0, height, 0, channels)
    alone = network.measure_layer(index, whole, None, 2)
    assert alone["cpu_us"] > 0 and alone["gpu_us"] == 0 and alone["total_us"] > 0
    alone = network.measure_layer(index, None, whole, 2)
    assert alone["gpu_us"] > 0 and alone["cpu_us"] == 0
    both = network.measure_layer(index, (0, height, 32, channels), (0, height, 0, 32), 2)
    assert min(both.values()) > 0
    (launch, *_) = network.dispatch(index, (0, height, 0, 32))
    assert launch["kernel"] in launch["choice"]
    for items, group in zip(launch["global"], launch["local"], strict=True):
        assert items % group == 0


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
def test_an_inference_is_measured_as_planned(
    device: str, cache: str, tmp_path: Path, sharing: str, synchronization: str
) -> None:
    """Each processor has a time where it has a part, and results stay right."""
    need(sharing, synchronization)
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    plan = halves(pair, by_rows=False)
    network = pair.load(plan, sharing, synchronization)
    times = network.measure_pass(2)
    assert times["total_us"] > 0
    for side, of_side in ((CPU, times["cpu_us"]), (GPU, times["gpu_us"])):
        at_work = {part.layer for part in plan.parts if part.processor == side}
        assert [us > 0 for us in of_side] == [i in at_work for i in range(len(of_side))]
    pair.check(network)


def test_passes_of_one_processor_are_measured(device: str, cache: str, tmp_path: Path) -> None:
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    for side in Processor:
        times = pair.load(whole_plan(pair.contents, side)).measure_pass(1)
        sums = sum(times["cpu_us"]), sum(times["gpu_us"])
        assert sums[side] > 0 and sums[1 - side] == 0
    with pytest.raises(InputError, match="gpu\\+cpu"):
        pair.alone.measure_pass(1)
    with pytest.raises(InputError, match="at least 1"):
        network = pair.load(whole_plan(pair.contents, CPU))
        network.measure_pass(0)


@pytest.mark.usefixtures("hasty_planning")
def test_a_plan_is_timed_inside_the_network(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a profile to a file that is planned, timed in whole inferences, and runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pair = Pair("tiny_classifier", tmp_path, device, str(tmp_path))
    key = pair.load(whole_plan(pair.contents, GPU)).plan_key
    profile = made_up_profile()
    facts = replace(profile.device, keys={1: key})
    write_profile(tmp_path / "device.json", replace(profile, device=facts))
    report = plan_file(pair.path, tmp_path / "device.json", device=device, measure=True)
    assert report.check is not None
    assert min(report.check.predicted_us, report.check.pass_us, report.check.home_us) > 0
    assert report.measurements > 0
    planned = _runtime.Network(pair.path, device=device, threads=1, cache_directory=str(tmp_path))
    assert ExecutionPlan.from_tuple(planned.plan).parts == report.planned.plan.parts
    pair.check(planned)


def test_a_slow_gpu_is_measured(device: str, cache: str, tmp_path: Path) -> None:
    """It may take the limit for each of the stages that a measurement has, not for all of them."""
    contents, index = layer_file(replace(PROBE, in_h=48, in_w=48, out_h=48, out_w=48, out_c=256))
    path = tmp_path / "slow.pbit"
    path.write_bytes(file_bytes(contents))

    def measured_us(limit_ms: int) -> float:
        network = gpu_runtime().Network(
            path, device=device, threads=1, cache_directory=cache, sync_limit_ms=limit_ms
        )
        return float(network.measure_layer(index, None, (0, 48, 0, 256), 1)["total_us"])

    assert measured_us(max(int(4e-3 * measured_us(2000)), 1)) > 0


def test_a_plan_that_does_not_fit_is_refused(device: str, cache: str, tmp_path: Path) -> None:
    pair = Pair("tiny_classifier", tmp_path, device, cache)
    plan = whole_plan(pair.contents, GPU)
    with pytest.raises(InputError, match="layer"):
        pair.load(ExecutionPlan("test", "user", 0.0, plan.parts[:-1]))


def test_two_networks_at_once(device: str, cache: str, tmp_path: Path) -> None:
    pairs = [Pair(name, tmp_path, device, cache) for name in ("tiny_classifier", "float_layers")]
    networks = [pair.load(halves(pair, by_rows=True)) for pair in pairs]
    failures: list[BaseException] = []

    def work(pair: Pair, network: Any) -> None:
        try:
            expected = pair.alone.forward(pair.inputs)
            for _ in range(20):
                for got, want in zip(network.forward(pair.inputs), expected, strict=True):
                    np.testing.assert_array_equal(got, want)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=both) for both in zip(pairs, networks, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_images_on_the_gpu_next_to_buffers_on_the_cpu(
    device: str, cache: str, tmp_path: Path
) -> None:
    """CoDL's hybrid types: the GPU reads through its texture unit, the CPU from memory."""
    if not pyopencl_device().image_support:
        pytest.skip("the device has no images")
    pair = Pair("binary_conv_threshold_256_64_pad0", tmp_path, device, cache)
    (known,) = (d for d in gpu_devices() if device == f"gpu:{d.index}+cpu")
    place = f"{known.vendor} {known.family} {known.name.replace(' ', '_')}"
    tuning = f"binary_conv2d * {place} bconv2d_image\n"
    for by_rows in (True, False):
        network = pair.load(halves(pair, by_rows), tuning=tuning)
        assert any("gpu bconv2d_image" in layer.kernel for layer in network.layers)
        pair.check(network)
