"""``phonebit.estimate``: modelled times follow from the tables, and descriptions are checked."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.phones import blocks
from benchmarks.phones.blocks import Block
from benchmarks.records import read_results
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.writer import to_bytes
from phonebit.errors import InputError
from phonebit.estimate.cpu import TERMS, cpu_table
from phonebit.estimate.gpu import item_work
from phonebit.estimate.network_times import RANGE, estimate
from phonebit.estimate.phones import PhoneModel, known_phones, phone_named, phone_of_soc
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.predict.layer_shape import LayerShape
from support.cli_process import Cli
from support.engine_net import Net

CONVOLUTION = LayerShape(
    "binary_conv2d", 14, 14, 256, 14, 14, 256, "bit", (256,), 3, 3, pad_top=1, pad_left=1,
    bits=True, thresholds=True, weight_bits=1,
)  # fmt: skip
BOARD = """
title = "a board"
bandwidth_gbs = 10.0
cpu = [{ core = "a55", clock_mhz = 1000, slowdown = 1.5 }]
"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "network.pbit"
    path.write_bytes(file_bytes(layer_file(CONVOLUTION)[0]))
    return path


def binary_layer(network: Path, phone: PhoneModel, processor: int = 0) -> tuple[float, str]:
    layer = estimate(network, phone).processors[processor].layers[-1]
    return layer.ms, layer.bound


@pytest.mark.parametrize("name", known_phones())
def test_every_phone_gives_times_of_all_its_processors(network: Path, name: str) -> None:
    phone = phone_named(name)
    found = estimate(network, phone)
    assert len(found.processors) == len(phone.cpu) + (phone.gpu is not None)
    for each in found.processors:
        assert [layer.name for layer in each.layers] == ["elementwise_0", "binary_conv2d_1"]
        assert each.layers[1].work is not None
        assert each.total_ms == sum(layer.ms for layer in each.layers) > 0
        assert each.range_ms == tuple(share * each.total_ms for share in RANGE)


def test_the_papers_times_are_those_of_its_kernels_within_a_seventh() -> None:
    """And are off in both directions: a slowdown is the mean of what the three networks need."""
    rows = [row for row in read_results("phones.json")["published"] if "paper_ms" in row]
    for gpu in ("Adreno (TM) 530", "Adreno (TM) 640"):
        found = [row["paper_ms"] / row["published_ms"] for row in rows if row["processor"] == gpu]
        assert len(found) == 3
        assert 1 / 1.15 < min(found) < 1 < max(found) < 1.16
        assert math.prod(found) ** (1 / 3) == pytest.approx(1, abs=0.02)


def test_a_time_is_the_longest_of_its_bounds(network: Path) -> None:
    phone = known_phones()["snapdragon-855"]
    gpu = phone.gpu
    assert gpu is not None
    free = replace(gpu, launch_us=1e-6)
    ms, bound = binary_layer(network, replace(phone, gpu=free))
    assert bound == "ALU"
    fast = replace(free, clock_mhz=2 * gpu.clock_mhz)
    assert binary_layer(network, replace(phone, gpu=fast))[0] == pytest.approx(ms / 2, rel=1e-3)
    # One unit more or less of many rounds; with more units than groups, and lanes for all of a
    # group, a wave's length is left.
    wide = replace(free, units=10**6, lanes=10**3)
    assert binary_layer(network, replace(phone, gpu=wide))[1] == "latency"
    slow = binary_layer(network, replace(phone, gpu=free, bandwidth_gbs=0.01))
    assert slow[1] == "memory" and slow[0] > ms
    assert binary_layer(network, replace(phone, gpu=replace(gpu, launch_us=9e3)))[1] == "launch"

    core = phone.cpu[0]
    ms, bound = binary_layer(network, phone, 1)
    assert bound == "cycles"
    slower = replace(phone, cpu=(replace(core, slowdown=2 * core.slowdown),))
    assert binary_layer(network, slower, 1)[0] == pytest.approx(2 * ms)


@pytest.mark.parametrize(
    ("phone", "compiled_for"),
    [("snapdragon-855", "adreno-630"), ("snapdragon-8-gen-2", "adreno-740"),
     ("dimensity-8100", "mali-g610")],
)  # fmt: skip
def test_instructions_are_those_of_the_compiled_kernels(phone: str, compiled_for: str) -> None:
    """The table's fit against a row of the machine code's own results."""
    document = read_results("mobile_isa.json")
    rows = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
    (row,) = (
        row
        for row in rows
        if (row["gpu"], row["layer"], row["role"]) == (compiled_for, "3x3 256@14", "chosen")
    )
    gpu = known_phones()[phone].gpu
    assert gpu is not None
    (launch,) = gpu.facts().launches(CONVOLUTION, CONVOLUTION.whole)
    assert launch.kernel == row["kernel"]
    parameters = dict(launch.choice.parameters)
    words = 9 * 8 * parameters["TILE_PIXELS"] * parameters["TILE_FILTERS"]
    work = item_work(CONVOLUTION, launch, gpu.code)
    assert work is not None
    assert work.instructions / words == pytest.approx(row["instructions_per_unit"], rel=0.05)
    assert work.cycles / words == pytest.approx(row["cycles_per_unit"], rel=0.05)


def test_the_forms_of_the_paper_are_modelled_too(network: Path) -> None:
    phone = known_phones()["snapdragon-855"]
    (_, usual), (_, papers) = (
        estimate(network, phone, kernels).processors[0].layers for kernels in ("tuned", "paper")
    )
    assert (usual.kernel, papers.kernel) == ("bconv2d_tiled 1x8", "bconv2d_byte")
    assert papers.work is not None and papers.ms > usual.ms


def test_halves_are_half_of_the_bytes_between_layers(tmp_path: Path) -> None:
    """A convolution between two others reads and writes halves on the GPU, floats on a core."""
    net = Net("three")
    weights = np.linspace(-1, 1, 32 * 9 * 32, dtype=np.float32).reshape(32, 3, 3, 32)
    value = net.input("x", (14, 14, 32))
    for name in ("first", "middle", "last"):
        value = net.op(name, Conv2D(weights, Window((3, 3), pads=(1, 1, 1, 1))), value)
    path = tmp_path / "three.pbit"
    path.write_bytes(to_bytes(net.done(value)))
    phone = known_phones()["snapdragon-855"]
    exact, half = (estimate(path, phone, precision=of).processors for of in ("exact", "f16"))
    tensor, constants = 4 * 14 * 14 * 32, 4 * 32 * 9 * 32
    assert [layer.bytes for layer in exact[0].layers] == [2 * tensor + constants] * 3
    saved = [a.bytes - b.bytes for a, b in zip(exact[0].layers, half[0].layers, strict=True)]
    assert saved == [tensor / 2, tensor, tensor / 2]
    assert exact[1:] == half[1:]
    dot = estimate(path, phone, "paper", "f16").processors[0].layers[0].kernel
    assert dot.startswith("conv2d_f32_dot")
    with pytest.raises(InputError, match="expected exact, f16, got 'fast'"):
        estimate(path, phone, precision="fast")  # type: ignore[arg-type]


def test_the_cycle_table_has_a_number_for_each_term() -> None:
    table = cpu_table()
    assert table["terms"] == list(TERMS)
    for cores in table["cycles"].values():
        assert all(len(weights) == len(TERMS) and min(weights) >= 0 for weights in cores.values())
    fastest = {phone.cpu[0].core for phone in known_phones().values()}
    assert fastest <= set(table["cores"])


@pytest.mark.parametrize(
    ("soc", "name"),
    [("Google Tensor G3", "pixel-8"), ("QTI SM8550", "snapdragon-8-gen-2"),
     ("msmnile", "snapdragon-855"), ("Exynos", None), ("", None)],
)  # fmt: skip
def test_a_phone_is_known_by_its_chip(soc: str, name: str | None) -> None:
    phone = phone_of_soc(soc)
    assert (phone and phone.name) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOARD.replace('title = "a board"\n', ""), "expected keys bandwidth_gbs, cpu"),
        (BOARD.replace("10.0", "-1"), "bandwidth_gbs is no positive number"),
        (BOARD.replace("1000", "true"), "clock_mhz is no positive number"),
        (BOARD.replace("a55", "z80"), "unknown core"),
        (BOARD.replace("[{", "[3, {"), "not a description of a phone"),
        (BOARD + "[", "not a TOML file"),
    ],
)
def test_a_description_with_a_mistake_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "board.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        phone_named(str(path))
    with pytest.raises(InputError, match=r"no such phone.*snapdragon-855"):
        phone_named("nokia-3310")


def test_the_command_says_that_nothing_is_measured(cli: Cli, network: Path, tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD)
    text = cli("estimate", network, "--phone", board).out
    assert "modelled, not measured" in text and "binary_conv2d shared_sums" in text
    document = cli("estimate", network, "--phone", board, "--json").document
    assert document["basis"] == "modelled, not measured"
    (core,) = document["processors"]
    assert core["ms"] == pytest.approx(sum(layer["ms"] for layer in core["layers"]))
    assert "no such phone" in cli.refused("estimate", network, "--phone", "nokia-3310")


def test_what_a_program_does_once_is_not_in_an_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    start, loop = Block("start", ("d503201f",) * 3), Block("loop", ("d503201f",))

    def executed(command: list[str], _cpu: str, _static_qemu: str) -> Counter[Block]:
        return Counter({start: 7, loop: 5 + 100 * int(command[-1])})

    monkeypatch.setattr(blocks, "executed_blocks", executed)
    assert blocks.blocks_of_an_inference(lambda passes: ["program", str(passes)], "max") == {
        loop: 100
    }
