"""The GPU benchmark with other engines: the float twin in their formats, document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peers.formats import export
from benchmarks.peers.gpu import compare, document
from benchmarks.peers.harness.catalogue import subject
from phonebit.converter import interpreter
from phonebit.converter.ir import Graph
from phonebit.converter.ops import BatchNorm
from phonebit.errors import ConversionError
from phonebit.models.networks.builder import NetworkBuilder

RNG = np.random.default_rng(11)


def twin() -> Graph:
    """A float network with every kind of layer that the writers know."""
    net = NetworkBuilder("twin", "float", "leaky_relu")
    x = net.conv("stem", net.image(14, 14), 8, 3, stride=2, padding=(0, 0, 1, 1))
    x = net.activate("leaky", net.batch_norm("bn1", x))
    shortcut = net.max_pool("pool", x, 3, 2, 1)
    x = net.conv("depthwise", x, 8, 3, stride=2, padding=1, groups=8)
    x = net.relu("relu", net.batch_norm("bn2", net.relu("relu_before", x)))
    x = net.add("add", x, shortcut)
    x = net.conv("grow", x, 12, 3, padding=1, bias=True)
    x = net.average_pool("mean2", net.relu("relu2", x), 2, 2)
    x = net.dense("fc1", x, 10)
    x = net.relu("relu3", net.batch_norm("bn3", x))
    return net.done(net.dense("fc2", x, 5, bias=True))


def images(graph: Graph, count: int = 1) -> np.ndarray:
    shape = (count, *graph.types[graph.inputs[0]].shape)
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def expected(graph: Graph, x: np.ndarray) -> np.ndarray:
    return interpreter.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]


@pytest.mark.torch
def test_ncnn_computes_what_the_source_graph_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncnn = pytest.importorskip("ncnn", reason="ncnn is not installed (pip install ncnn)")
    pytest.importorskip("pnnx", reason="pnnx is not installed (pip install pnnx)")
    graph = twin()
    monkeypatch.setattr(export.Job, "graph", lambda job, form: graph)
    job = export.Job(subject("alexnet"), tmp_path, "f32")
    export.write(job, "torchscript")
    export.write(job, "ncnn")
    assert {path.name for path in tmp_path.iterdir()} == {
        "float.pt", "float.ncnn.param", "float.ncnn.bin"}  # fmt: skip
    x = images(graph)
    net = ncnn.Net()
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_arithmetic = False
    assert net.load_param(str(job.path("ncnn"))) == 0
    assert net.load_model(str(job.path("ncnn").with_suffix(".bin"))) == 0
    extractor = net.create_extractor()
    planes = np.ascontiguousarray(x[0].transpose(2, 0, 1))  # ncnn's array points into it
    extractor.input(net.input_names()[0], ncnn.Mat(planes))
    code, result = extractor.extract(net.output_names()[0])
    assert code == 0
    # Weights are stored as half floats: 2^-11 each, more after some layers.
    np.testing.assert_allclose(np.array(result), expected(graph, x)[0, 0, 0], rtol=0.02, atol=0.01)


@pytest.mark.framework
@pytest.mark.parametrize("mirrored", [False, True])
def test_tflite_file_computes_what_the_source_graph_does(mirrored: bool) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from benchmarks.peers.formats.keras_format import to_keras
    from benchmarks.peers.formats.source_graphs import fold_batch_norm

    graph = twin()
    model = to_keras(fold_batch_norm(graph), mirrored)
    x = images(graph)
    engine = tf.lite.Interpreter(
        model_content=tf.lite.TFLiteConverter.from_keras_model(model).convert()
    )
    engine.allocate_tensors()
    engine.set_tensor(engine.get_input_details()[0]["index"], x)
    engine.invoke()
    result = engine.get_tensor(engine.get_output_details()[0]["index"])
    # Float32 in another order of sums.
    np.testing.assert_allclose(result, expected(graph, x)[:, 0, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.torch
def test_onnx_file_computes_what_the_source_graph_does_and_names_its_layers(
    tmp_path: Path,
) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    import onnx

    from benchmarks.peers.formats.torch_format import save_onnx

    graph = twin()
    save_onnx(graph, tmp_path / "twin.onnx")
    nodes = onnx.load(tmp_path / "twin.onnx").graph.node
    layers = {node.name for node in graph.nodes}
    assert {node.name.partition("/")[0] for node in nodes} <= layers
    x = images(graph, 3)
    session = onnxruntime.InferenceSession(
        tmp_path / "twin.onnx", providers=["CPUExecutionProvider"]
    )
    feeds = {session.get_inputs()[0].name: np.ascontiguousarray(x.transpose(0, 3, 1, 2))}
    (result,) = session.run(None, feeds)
    np.testing.assert_allclose(result, expected(graph, x)[:, 0, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.torch
def test_torch_module_computes_what_the_source_graph_does() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    graph = twin()
    from benchmarks.peers.formats.torch_format import FloatNetwork

    x = images(graph, 3)
    with torch.inference_mode():
        result = FloatNetwork(graph).eval()(torch.from_numpy(x).permute(0, 3, 1, 2))
    # Float32 in another order of sums; batch normalization folded.
    np.testing.assert_allclose(result.numpy(), expected(graph, x)[:, 0, 0], rtol=1e-4, atol=1e-6)


def results() -> dict[str, Any]:
    """What compare.py writes, of two networks; LiteRT failed on one."""

    def batch(count: int, ms: float, ratio: float, device_ms: float | None) -> dict[str, Any]:
        row = {"batch": count, "median_ms": ms, "ratio": ratio, "device_ms": device_ms}
        row |= {"rounds": 9 + count, "steady": 5 + count}
        return {**row, "memory_mib": 512.0 if count > 1 else None}

    def entry(key: str, title: str, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"key": key, "title": title, "batches": list(rows), "agreement": [], **more}

    starts = [
        {"start_ms": 9000.0, "first_ms": 500.0, "programs_built": 14},
        {"start_ms": 400.0, "first_ms": 100.0, "programs_built": 0},
    ]
    equal = {"batch": 1, "equal": True, "finite": True, "difference": 0.0}
    near = {"batch": 1, "equal": False, "finite": True, "difference": 0.0031}
    wrong = {"batch": 1, "equal": False, "finite": False}
    ours = entry("phonebit", "PhoneBit", batch(1, 0.25, 1.0, 0.2), batch(8, 0.5, 1.0, 0.4))
    ours |= {"starts": starts, "agreement": [equal]}
    ncnn = entry("ncnn", "ncnn", batch(1, 3.5, 14.2, None), batch(8, 28.0, 56.0, None))
    ncnn |= {"notes": ["no batches"], "agreement": [near, wrong]}
    litert = entry("litert", "LiteRT", failure="start: RuntimeError:\nno adapter")
    context = {"cpu": "A CPU", "cores": 2, "gpu": "A GPU", "driver": "580.1", "commit": "abc"}
    context |= {"date": "2026-11-22"}
    networks = [{"name": name, "rows": [ours, ncnn]} for name in ("alexnet", "vgg16")]
    networks[1]["rows"] = [ours, ncnn, litert]
    return {"context": context, "networks": networks}


def test_document_shows_times_ratios_and_reasons() -> None:
    text = document.render(results())
    assert "A CPU, 2 cores; A GPU, driver 580.1; commit abc; 2026-11-22: `python -m" in text
    assert "| PhoneBit | 0.25 (0.2) | 0.25 (0.2) |" in text
    assert "| ncnn | 3.5 **14x** | 3.5 **14x** |" in text
    assert "| ncnn | 0.286 | 0.286 |" in text  # thousands of images per second at batch 8
    assert "| LiteRT |  | failed |" in text
    assert "- LiteRT failed on VGG16: `start: RuntimeError: no adapter`" in text
    assert "| AlexNet | PhoneBit | 0.50 | 9.50 | 14, then 0 | 512 |" in text


def test_document_of_batches_shows_the_curve_and_where_it_ends() -> None:
    found = results()
    for network in found["networks"]:
        network["rows"][1] |= {"key": "torch", "title": "PyTorch"}
    tuning = {"level": "normal", "limit_s": 60.0}
    for network, complete in zip(found["networks"], (True, False), strict=True):
        tuned = {**network["rows"][0], "key": "phonebit_tuned", "title": "PhoneBit, tuned"}
        network["rows"].append({**tuned, "tuning": {**tuning, "complete": complete}})
    text = document.render_batches(found)
    assert "| 8 | 16 **56x** | 16 **56x** |" in text
    assert "| PhoneBit | 0.25 (0.2) **14x** | 0.25 (0.2) **14x** |" in text
    assert "| PhoneBit, tuned | 0.5 (0.4) **56x** | 0.5 (0.4) **56x** |" in text
    assert "| PyTorch | 28 | 28 |" in text
    told = "after `phonebit tune --level normal`, all networks at the same time, for at most 60 s"
    assert f"- PhoneBit, tuned: {told}; stopped before its end: VGG16." in text
    told = "90% of the highest throughput from batch 8 on. At batch 8 kernels take 80% of the time"
    assert f"- AlexNet: {told}" in text
    assert f"- VGG16: {told}" in text


@pytest.mark.slow
def test_tuners_run_at_the_same_time_until_their_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {
        "quick": "",
        "broken": "raise SystemExit('no device')",
        "long": "import time; time.sleep(60)",
    }

    def command(_: str, model: str, *_options: str) -> list[str]:
        return [sys.executable, "-c", programs[Path(model).stem]]

    monkeypatch.setattr(compare, "phonebit_command", command)
    rows = compare.tune_all({name: Path(f"{name}.pbit") for name in programs}, tmp_path, "rapid", 5)
    assert {name: row["complete"] for name, row in rows.items()} == {
        "quick": True, "broken": False, "long": False}  # fmt: skip
    assert rows["broken"]["failure"] == "no device"
    assert rows["long"]["failure"] == "took more than 5 s"


def test_document_says_what_is_exact_and_what_is_not() -> None:
    text = document.render(results())
    assert "- PhoneBit: results equal to the CPU backend's to the last bit." in text
    assert "- ncnn: results within 3.1e-03 of the largest reference value." in text
    assert "- ncnn: results that are no numbers on AlexNet, VGG16." in text
    assert text.count("- ncnn: no batches.") == 1
    assert "Rounds for a number: 10 to 17; at least 6 of them" in text


@pytest.mark.torch
def test_operator_without_a_layer_in_pytorch_is_an_error_that_names_it() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from benchmarks.peers.formats.torch_format import FloatNetwork

    net = NetworkBuilder("signs", "binary")
    x = net.conv("conv", net.image(6, 6), 4, 3)
    graph = net.done(net.activate("sign", net.batch_norm("bn", x)))
    with pytest.raises(ConversionError, match="sign"):
        FloatNetwork(graph)


def test_twin_has_a_batch_norm_that_cannot_be_folded() -> None:
    """Else the tests above would not see how writers express one."""
    graph = twin()
    kinds = [type(node.op) for node in graph.nodes]
    assert BatchNorm in kinds
