"""``phonebit.onnxruntime.session``: results, parts, threads, compiled files and shutdown."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from provider_models import MAP, WIDTH, Nodes, numbers, sorted_on_the_way, whole  # noqa: E402

import phonebit.onnxruntime  # noqa: E402

pytestmark = pytest.mark.torch  # CI has ONNX Runtime where PyTorch is


def cpu(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """What the CPU provider computes."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def assert_equal_to_cpu(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """Results are the CPU provider's, bit for bit; returns the report."""
    session = phonebit.onnxruntime.session(model, threads=1)
    results = session.run(None, feeds)
    for expected, result in zip(cpu(model, feeds), results, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result, expected)
    return session.report


@pytest.mark.parametrize("batch", [0, 1, 3, 17])
def test_a_whole_model_gives_the_cpu_providers_bits_for_any_batch(batch: int) -> None:
    report = assert_equal_to_cpu(whole(), {"x": numbers(batch, batch)})
    assert [(part.name, part.binary_layers) for part in report.parts] == [("", 2)]
    assert not report.rest


def test_parts_around_what_does_not_convert() -> None:
    report = assert_equal_to_cpu(sorted_on_the_way(), {"x": numbers(3)})
    assert [(part.name, part.binary_layers) for part in report.parts] == [
        ("GreaterOrEqual0 to Conv5", 2),
        ("GreaterOrEqual7 to MatMul11", 1),
    ]
    assert report.rest == {
        "TopK6": "chooses places, where a file gives scores",
        "ArgMax12": "chooses places, where a file gives scores",
    }
    assert "ONNX Runtime: TopK6: chooses places" in str(report)


def test_an_unsupported_operator_is_named() -> None:
    nodes = Nodes().binary(1).add("Hardmax", axis=1).binary(2)
    report = assert_equal_to_cpu(nodes.model(), {"x": numbers(2)})
    assert [part.name for part in report.parts] == [
        "GreaterOrEqual0 to Conv2",
        "GreaterOrEqual4 to Conv6",
    ]
    assert "Hardmax is not supported" in report.rest["Hardmax3"]


def test_maps_bits_and_scores_are_outputs() -> None:
    nodes = Nodes().binary(1)
    first = nodes.value
    nodes.add("GreaterOrEqual", "zero").add("Where", "one", "minus")
    bits = nodes.value
    nodes.add("Conv", np.sign(numbers(WIDTH, 4, (0, WIDTH, 1, 1)) + 0.5)).scores()
    report = assert_equal_to_cpu(nodes.model([first, bits, nodes.value]), {"x": numbers(2)})
    assert [part.name for part in report.parts] == [""]


def test_maps_of_channels_last_stay_as_they_are() -> None:
    nodes = Nodes().add("Transpose", perm=[0, 3, 1, 2]).binary(1)
    nodes.add("Transpose", perm=[0, 2, 3, 1])
    shape = ("N", 6, 7, WIDTH)
    assert_equal_to_cpu(nodes.model(inputs={"x": shape}), {"x": numbers(2, 3, shape)})


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT64])
def test_whole_numbers_are_inputs(kind: int) -> None:
    nodes = Nodes().add("Cast", to=TensorProto.FLOAT).add("Sub", np.float32(4)).binary(1)
    x = numbers(2) + 8
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    assert_equal_to_cpu(nodes.model(kind=kind), {"x": x.astype(dtype)})


def test_what_reads_halves_or_shapes_stays_in_onnx_runtime() -> None:
    nodes = Nodes().add("Cast", to=TensorProto.FLOAT).binary(1).add("Hardmax", axis=1).binary(2)
    nodes.add("Reshape", "sizes")
    sizes = helper.make_node("Shape", [nodes.nodes[3].output[0]], ["sizes"], name="Shape")
    nodes.nodes.insert(4, sizes)
    x = numbers(2).astype(np.float16)
    report = assert_equal_to_cpu(nodes.model(kind=TensorProto.FLOAT16), {"x": x})
    assert [part.binary_layers for part in report.parts] == [1, 1]
    assert report.rest["Cast0"] == "reads 'x', which is of type float16"
    assert report.rest["Shape"] == "gives no floats"


def test_several_inputs() -> None:
    nodes = Nodes("a").add("Add", "b").binary(1)
    model = nodes.model(inputs={"a": MAP, "b": MAP})
    assert_equal_to_cpu(model, {"a": numbers(2, 1), "b": numbers(2, 2)})


def test_a_model_with_tensors_outside_of_its_file(tmp_path: Path) -> None:
    model = sorted_on_the_way()
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    session = phonebit.onnxruntime.session(path, threads=1)
    x = {"x": numbers(2)}
    for expected, result in zip(cpu(sorted_on_the_way(), x), session.run(None, x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_sessions_run_in_several_threads_at_the_same_time() -> None:
    model = whole()
    sessions = [phonebit.onnxruntime.session(model, threads=1) for _ in range(2)]
    inputs = [numbers(1 + index % 3, index) for index in range(8)]
    expected = [cpu(model, {"x": x})[0] for x in inputs]
    failures: list[int] = []

    def run(index: int) -> None:
        for _ in range(20):
            result = sessions[index % 2].run(None, {"x": inputs[index]})[0]
            if not np.array_equal(result, expected[index]):
                failures.append(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_compiled_file_needs_the_library_only(tmp_path: Path) -> None:
    path, model = tmp_path / "net.onnx", sorted_on_the_way()
    report = phonebit.onnxruntime.compile_model(model, path)
    assert len(report.parts) == 2
    compiled = onnx.load(path)
    assert [node.op_type for node in compiled.graph.node] == [
        "EPContext",
        "TopK",
        "EPContext",
        "ArgMax",
    ]
    session = phonebit.onnxruntime.session(path, threads=1)
    assert session.report is None
    x = {"x": numbers(2, 5)}
    for expected, result in zip(cpu(model, x), session.run(None, x), strict=True):
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(phonebit.ConversionError, match=r"net.onnx: is compiled already"):
        phonebit.onnxruntime.compile_model(path, tmp_path / "again.onnx")
    with pytest.raises(phonebit.InputError, match="one of the inputs"):
        phonebit.onnxruntime.compile_model(path, path)


def test_an_output_that_the_optimizer_stops_reading() -> None:
    """Its shape alone is read, which ONNX Runtime knows when it makes the session."""
    nodes = Nodes().binary(1)
    first = nodes.value
    nodes.add("Hardmax", axis=1)
    model = nodes.model([nodes.value, "shape"], inputs={"x": (2, *MAP[1:])})
    model.graph.node.append(helper.make_node("Shape", [first], ["shape"], name="Shape"))
    assert_equal_to_cpu(model, {"x": numbers(2)})


def test_allocators_of_the_environment() -> None:
    info = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(info, None)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.use_env_allocators", "1")
    model, x = sorted_on_the_way(), {"x": numbers(2, 6)}
    session = phonebit.onnxruntime.session(model, threads=1, options=options)
    for expected, result in zip(cpu(model, x), session.run(None, x), strict=True):
        np.testing.assert_array_equal(result, expected)


SHUTDOWN = {
    "sessions live until the end": "",
    "the library goes first": "onnxruntime.unregister_execution_provider_library('PhoneBit')",
    "sessions go first, and come again": """
del session
onnxruntime.unregister_execution_provider_library('PhoneBit')
session = phonebit.onnxruntime.session(sys.argv[1], threads=2)
session.run(None, feeds)
""",
}


@pytest.mark.parametrize("order", SHUTDOWN)
def test_a_process_ends_well(order: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(whole(), path)
    program = f"""
import sys, numpy, onnxruntime, phonebit.onnxruntime
session = phonebit.onnxruntime.session(sys.argv[1], threads=2)
feeds = {{"x": numpy.zeros((1, 32, 6, 7), numpy.float32)}}
session.run(None, feeds)
{SHUTDOWN[order]}
print("well")
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, path], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")
