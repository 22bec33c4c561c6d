"""What predictors reckon without the device: work sizes, kernel choices, geometry, CPU kernels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from phonebit.compiled import load_runtime
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.errors import InputError
from phonebit.format.reader import parse_contents
from phonebit.format.writer import file_bytes
from phonebit.network import Network
from phonebit.planner import OutputPart
from phonebit.planner.json_records import from_record, to_record
from phonebit.planner.measure.engines import cpu_facts, gpu_facts
from phonebit.planner.measure.measuring import PROBE
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.measure.sampling import (
    FAMILY_CYCLE,
    OTHERS_A_CYCLE,
    sample_cuts,
    sample_layers,
)
from phonebit.planner.predict.kernels import (
    FAMILIES,
    CpuFacts,
    GpuFacts,
    cpu_kernel,
)
from phonebit.planner.predict.layer_shape import LayerShape
from support.made_up_device import FACTS
from support.opencl_device import check_warnings

CONV = replace(PROBE, in_h=56, in_w=56, out_h=56, out_w=56, in_c=64, operand_channels=(64,))
DENSE = replace(
    PROBE, in_h=1, in_w=1, out_h=1, out_w=1, kernel_h=1, kernel_w=1, pad_top=0, pad_left=0
)
CYCLES = -(-len(set(FAMILIES) - set(FAMILY_CYCLE)) // OTHERS_A_CYCLE)
SAMPLED = list(islice(sample_layers(7), CYCLES * (len(FAMILY_CYCLE) + OTHERS_A_CYCLE)))


def kernels_of(gpu: GpuFacts, layer: LayerShape) -> list[str]:
    return [text.split()[0] for text in gpu.candidates(layer, layer.whole)]


def test_every_layer_has_launches_of_whole_groups() -> None:
    for layer in SAMPLED:
        for launch in FACTS.gpu.launches(layer, layer.whole):
            sides = zip(launch.global_size, launch.local_size, strict=True)
            assert all(side > 0 and side % local == 0 for side, local in sides), launch


def test_the_most_specific_line_of_a_table_is_used() -> None:
    lines = [
        "binary_conv2d * * * * bconv2d_tiled TILE_PIXELS=1",
        "binary_conv2d small * * * bconv2d_split",
        "binary_conv2d window nvidia * * bconv2d_tiled TILE_PIXELS=4",
        "binary_conv2d 3x3s1d1g1_64c_56x56_64c * * * bconv2d_byte",
        "conv2d_u8 * * * * conv2d_u8_direct",
    ]
    text = "# comment\n" + "\n".join(lines)
    h200 = replace(FACTS.gpu, vendor="nvidia", family="hopper", name="H 200")
    assert list(h200.with_tuning(text).tuning[: len(lines)]) == lines
    found = kernels_of(replace(h200, tuning=tuple(lines)), CONV)
    assert found[:3] == ["bconv2d_tiled", "bconv2d_byte", "bconv2d_tiled"]
    mali = replace(FACTS.gpu, vendor="arm", family="valhall", name="Mali")
    assert lines[2] not in mali.with_tuning(text).tuning
    with pytest.raises(InputError, match="tuning lines:1"):
        mali.with_tuning("binary_conv2d * *")


def test_tensor_cores_are_used_where_they_are() -> None:
    hopper = replace(FACTS.gpu, vendor="nvidia", family="hopper", name="NVIDIA H200")
    hopper = hopper.with_tuning("")
    assert kernels_of(hopper, CONV)[0] == "bconv2d_mma"
    turing = replace(hopper, family="turing")
    assert kernels_of(turing, CONV)[0] == "bconv2d_tiled"
    assert kernels_of(hopper, DENSE)[0] == "bconv2d_mma"
    assert kernels_of(turing, DENSE)[0] == "bgemv"


def test_a_cut_is_dispatched_as_a_smaller_layer() -> None:
    made_up = FACTS.gpu
    (whole,) = made_up.launches(CONV, CONV.whole)
    (rows,) = made_up.launches(CONV, OutputPart(0, 28, 0, 64))
    (channels,) = made_up.launches(CONV, OutputPart(0, 56, 0, 32))
    assert rows.global_size[0] == pytest.approx(whole.global_size[0] / 2, abs=64)
    assert channels.global_size == (whole.global_size[0], whole.global_size[1] / 2, 1)
    assert whole.groups == whole.global_size[0] // 64 * (whole.global_size[1] // 2)
    # TILE_FILTERS is 16: a part from channel 8 on needs another kernel.
    (odd,) = made_up.launches(CONV, OutputPart(0, 56, 8, 64))
    assert odd.choice != whole.choice
    pool = replace(PROBE, op="max_pool2d", thresholds=False, weight_bits=0)
    with pytest.raises(InputError, match="no kernel supports max_pool2d_bits"):
        made_up.launches(pool, OutputPart(0, 14, 8, 64))


def test_kernels_of_several_launches() -> None:
    made_up = replace(FACTS.gpu, tuning=("conv2d_u8 * * * * conv2d_u8_planes",))
    u8 = replace(CONV, op="conv2d", input="u8", in_c=3, operand_channels=(3,), input_add=-255)
    assert [launch.kernel for launch in made_up.launches(u8, u8.whole)] == [
        "split_planes",
        "conv2d_u8_planes",
    ]
    joined = replace(
        PROBE, op="concat", operand_channels=(32, 64, 8), in_c=32, out_c=104, thresholds=False
    )
    assert len(made_up.launches(joined, joined.whole)) == 3


@pytest.mark.parametrize("layer", SAMPLED[-100:], ids=lambda layer: layer.family)
def test_a_sampled_layer_is_what_its_file_says(layer: LayerShape) -> None:
    contents, index = layer_file(layer)
    again = parse_contents(file_bytes(contents))
    assert LayerShape.of(again, index) == layer
    assert from_record(LayerShape, to_record(layer), "geometry") == layer
    for pair in sample_cuts(layer, 3):
        for part in filter(None, pair):
            assert 0 < layer.operations(part) < layer.operations(layer.whole)
            assert layer.output_bytes(part) < layer.output_bytes(layer.whole)


def test_samples_have_every_family_of_layers() -> None:
    assert {layer.family for layer in SAMPLED} == set(FAMILIES)
    assert list(islice(sample_layers(7), 5)) == SAMPLED[:5]
    assert list(islice(sample_layers(8), 5)) != SAMPLED[:5]


@pytest.mark.parametrize("threads", [1, 24])
def test_cpu_kernels_are_those_of_the_runtime(threads: int, tmp_path: Path) -> None:
    """On the instruction set of this machine; the marks are parts of the backend's names."""
    marks = {
        "binary_conv2d dense": "bgemv",
        "binary_conv2d shared_sums": "shared_sums",
        "binary_conv2d shared_windows": "shared_windows",
        "binary_conv2d carry_save": "carry_save",
        "binary_conv2d popcount": "bconv2d_b",
        "binary_conv2d pair_table": "pairtable",
    }
    facts = None
    seen = set()
    for number, layer in enumerate([PROBE, *SAMPLED]):
        if layer.op != "binary_conv2d":
            continue
        contents, index = layer_file(layer)
        path = tmp_path / f"{number}.pbit"
        path.write_bytes(file_bytes(contents))
        network = Network.load(path, device="cpu", threads=threads)
        kernel = network.layers[index].kernel
        if facts is None:
            isa = network.device.partition(":")[2]
            facts = cpu_facts(isa, 2, kernel)
        mine = cpu_kernel(layer, layer.whole, facts, threads).name
        if mine in marks:
            assert marks[mine] in kernel, layer
            seen.add(mine)
    assert len(seen) > 1


def test_kernels_fill_words_and_steps() -> None:
    """Three columns of 36 channels are 27 lookups of 4 bits, filled to 30; or two words each."""
    ragged = replace(CONV, in_c=36, operand_channels=(36,))
    assert ragged.taps == 9 * 36

    def operations(layer: LayerShape, isa: str) -> int:
        return cpu_kernel(layer, layer.whole, CpuFacts(isa, 1), threads=1).window_operations

    assert operations(ragged, "avx2") == 3 * 30 * 4
    assert operations(ragged, "avx512") == operations(ragged, "neon") == ragged.word_taps == 9 * 64
    assert CONV.word_taps == CONV.taps
    pixels = replace(CONV, op="conv2d", input="u8", in_c=3, operand_channels=(3,))
    assert operations(pixels, "avx2") == pixels.word_taps == 27


def test_32_bit_arm_cores_count() -> None:
    """Known by the kernel of a probe."""
    facts = cpu_facts("neon", 4, "bconv2d_b32__neoncnt")
    assert cpu_kernel(CONV, CONV.whole, facts, threads=1).name == "binary_conv2d count"
    assert cpu_kernel(DENSE, DENSE.whole, facts, threads=1).name == "binary_conv2d dense"
    assert (
        cpu_kernel(CONV, CONV.whole, CpuFacts("neon", 4), threads=1).name
        == "binary_conv2d shared_sums"
    )


@pytest.mark.parametrize("isa", load_runtime().isa_names())
def test_kernels_are_known_on_every_instruction_set(isa: str) -> None:
    """Of every build: the phone whose results train a cost model has another than this machine."""
    for layer in [PROBE, *SAMPLED]:
        assert cpu_kernel(layer, layer.whole, CpuFacts(isa, 4), threads=1).name.startswith(
            layer.family
        )


def test_instruction_sets_of_this_build_are_among_those_of_all() -> None:
    runtime = load_runtime()
    built = [name for name, _, _ in runtime.isas()]
    assert [name for name in runtime.isa_names() if name in built] == built


def test_unknown_instruction_sets_are_refused() -> None:
    with pytest.raises(InputError, match="unknown instruction set"):
        cpu_kernel(CONV, CONV.whole, CpuFacts("abacus", 1), threads=1)


def test_whole_layers_have_the_kernels_of_the_runtime(gpu: str, tmp_path: Path) -> None:
    from phonebit.devices.gpus import gpu_device

    facts = gpu_facts(gpu_device(gpu), "")
    small = [layer for layer in SAMPLED if layer.operations(layer.whole) < 2_000_000]
    firsts = {layer.family: layer for layer in small if layer.op != "reshape"}
    for family, layer in firsts.items():
        contents, index = layer_file(layer)
        path = tmp_path / f"{family}.pbit"
        path.write_bytes(file_bytes(contents))
        with warnings.catch_warnings(record=True) as caught:
            device = Network.load(path, device=gpu).layers[index].kernel
        check_warnings([str(warning.message) for warning in caught])
        assert KernelChoice.parse(device) == facts.launches(layer, layer.whole)[-1].choice


def test_dense_layers_are_told_from_maps() -> None:
    def is_dense(layer: LayerShape) -> bool:
        return cpu_kernel(layer, layer.whole, CpuFacts("avx2", 1), threads=1).name.endswith(
            " dense"
        )

    assert is_dense(DENSE)
    assert not is_dense(CONV)
    whole_map = replace(DENSE, in_h=7, in_w=7, kernel_h=7, kernel_w=7)
    assert is_dense(whole_map)
    assert not is_dense(replace(whole_map, kernel_w=6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_h": "7"}, "in_h"),
        ({"bits": 1}, "bits"),
        ({"colour": 3}, "colour"),
        ({"operand_channels": 3}, "operand_channels"),
    ],
)
def test_damaged_geometries_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_record(LayerShape, {**to_record(CONV), **change}, "geometry")
    with pytest.raises(InputError, match="a field is missing"):
        from_record(LayerShape, {"op": "pad", "operand_channels": [3]}, "geometry")
