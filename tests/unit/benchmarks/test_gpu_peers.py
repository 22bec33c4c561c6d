"""The GPU benchmark beside other engines: writers of the float twin, protocol, document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peers.gpu import document, ncnn_format
from benchmarks.peers.harness.worker_process import WorkerProcess
from benchmarks.records import ROOT
from phonebit.converter import interpreter
from phonebit.converter.ir import Graph
from phonebit.converter.ops import BatchNorm
from phonebit.converter.ops.epilogue import PRelu
from phonebit.errors import ConversionError
from phonebit.models.networks.builder import NetworkBuilder

PATIENCE_S = 60.0
RNG = np.random.default_rng(11)


def twin() -> Graph:
    """A float network with every kind of layer that the writers know."""
    net = NetworkBuilder("twin", "float", "leaky_relu")
    x = net.conv("stem", net.picture(14, 14), 8, 3, stride=2, padding=(0, 0, 1, 1))
    x = net.activate("leaky", net.batch_norm("bn1", x))
    shortcut = net.max_pool("pool", x, 3, 2, 1)
    x = net.conv("depthwise", x, 8, 3, stride=2, padding=1, groups=8)
    x = net.relu("relu", net.batch_norm("bn2", net.relu("relu_before", x)))
    x = net.add("add", x, shortcut)
    x = net.concat("concat", x, shortcut)
    x = net.conv("grow", x, 12, 3, padding=1, bias=True)
    x = net.average_pool("mean2", net.relu("relu2", x), 2, 2)
    x = net.dense("fc1", x, 10)
    x = net.relu("relu3", net.batch_norm("bn3", x))
    return net.done(net.dense("fc2", x, 5, bias=True))


def pictures(graph: Graph, count: int = 1) -> np.ndarray:
    shape = (count, *graph.types[graph.inputs[0]].shape)
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def expected(graph: Graph, x: np.ndarray) -> np.ndarray:
    return interpreter.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]


def read_param(path: Path) -> tuple[int, int, list[list[str]]]:
    """Counts of layers and blobs, and the lines' words."""
    magic, counts, *lines = path.read_text().splitlines()
    assert magic == "7767517"
    layers, blobs = map(int, counts.split())
    return layers, blobs, [line.split() for line in lines]


def blobs_of(words: list[str]) -> tuple[list[str], list[str]]:
    inputs, outputs = int(words[2]), int(words[3])
    return words[4 : 4 + inputs], words[4 + inputs : 4 + inputs + outputs]


def test_param_file_counts_its_layers_and_every_blob_has_one_writer_and_one_reader(
    tmp_path: Path,
) -> None:
    graph = twin()
    path, _ = ncnn_format.write_ncnn(graph, tmp_path, "twin")
    layers, blobs, lines = read_param(path)
    assert layers == len(lines)
    read = [name for words in lines for name in blobs_of(words)[0]]
    written = [name for words in lines for name in blobs_of(words)[1]]
    assert len(written) == len(set(written)) == blobs
    assert sorted(read) == sorted(set(written) - set(graph.outputs))


def test_bin_file_has_the_bytes_that_the_param_file_declares(tmp_path: Path) -> None:
    path, weights = ncnn_format.write_ncnn(twin(), tmp_path, "twin")
    total = 0
    for words in read_param(path)[2]:
        settings = dict(word.split("=") for word in words if "=" in word)
        convolution = {"Convolution": ("5", "6"), "ConvolutionDepthWise": ("5", "6")}
        bias, size = convolution.get(words[0], ("1", "2"))
        if words[0] in ("Convolution", "ConvolutionDepthWise", "InnerProduct"):
            total += 4 + -(-2 * int(settings[size]) // 4) * 4
            total += 4 * int(settings["0"]) * int(settings[bias])
        if words[0] == "BatchNorm":
            total += 16 * int(settings["0"])
    assert weights.stat().st_size == total


def test_folded_layers_are_absent_and_activations_part_of_convolutions(tmp_path: Path) -> None:
    path, _ = ncnn_format.write_ncnn(twin(), tmp_path, "twin")
    lines = {words[1]: words for words in read_param(path)[2]}
    assert "bn1" not in lines and "bn2" in lines  # a ReLU stands between the second and its layer
    assert "9=2" in lines["stem"] and "-23310=1,0.1" in " ".join(lines["stem"])
    assert "9=1" in lines["grow"] and "relu2" not in lines


def test_operator_without_ncnn_layer_is_an_error_that_names_the_layer(tmp_path: Path) -> None:
    net = NetworkBuilder("signs", "binary")
    x = net.conv("conv", net.picture(6, 6), 4, 3)
    graph = net.done(net.activate("sign", net.batch_norm("bn", x)))
    with pytest.raises(ConversionError, match="sign"):
        ncnn_format.write_ncnn(graph, tmp_path, "signs")


def test_ncnn_computes_what_the_source_graph_does(tmp_path: Path) -> None:
    ncnn = pytest.importorskip("ncnn", reason="ncnn is not installed (pip install ncnn)")
    graph = twin()
    path, weights = ncnn_format.write_ncnn(graph, tmp_path, "twin")
    x = pictures(graph)
    net = ncnn.Net()
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_arithmetic = False
    assert net.load_param(str(path)) == 0 and net.load_model(str(weights)) == 0
    extractor = net.create_extractor()
    planes = np.ascontiguousarray(x[0].transpose(2, 0, 1))  # ncnn's array points into it
    extractor.input(graph.inputs[0], ncnn.Mat(planes))
    code, result = extractor.extract(graph.outputs[0])
    assert code == 0
    # Weights are stored as half floats: 2^-11 each, more after some layers.
    np.testing.assert_allclose(np.array(result), expected(graph, x)[0, 0, 0], rtol=0.02, atol=0.01)


def test_tflite_file_computes_what_the_source_graph_does(tmp_path: Path) -> None:
    reason = "LiteRT is not installed (pip install ai-edge-litert)"
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason=reason)
    graph, path = twin(), tmp_path / "twin.tflite"
    from benchmarks.peers.gpu.tflite_format import write_tflite

    write_tflite(graph, path)
    x = pictures(graph)
    engine = runtime.Interpreter(str(path), num_threads=1)
    engine.allocate_tensors()
    engine.set_tensor(engine.get_input_details()[0]["index"], x)
    engine.invoke()
    result = engine.get_tensor(engine.get_output_details()[0]["index"])
    # Float32 in another order of sums.
    np.testing.assert_allclose(result, expected(graph, x)[:, 0, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("slopes", ["one", "one a channel"])
def test_torch_module_computes_what_the_source_graph_does(slopes: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    graph = twin()
    if slopes == "one a channel":
        (step,) = graph.producer("leaky").op.epilogue.steps  # type: ignore[union-attr]
        assert isinstance(step, PRelu)
        step.slope[:] = np.linspace(0.0, 0.5, len(step.slope))
    from benchmarks.peers.formats.torch_format import FloatNetwork

    x = pictures(graph, 3)
    with torch.inference_mode():
        result = FloatNetwork(graph).eval()(torch.from_numpy(x).permute(0, 3, 1, 2))
    # Float32 in another order of sums; batch normalization folded.
    np.testing.assert_allclose(
        result.permute(0, 2, 3, 1).numpy(), expected(graph, x), rtol=1e-4, atol=1e-6
    )


WORKER = """
import sys
import numpy as np
from benchmarks.peers.gpu.serving import Engine, serve

class Fake(Engine):
    def __init__(self, task):
        if task.model == "absent":
            raise RuntimeError("no such file: " + task.model)
        print("engines print things")
        super().__init__("1.2", ("a note",), {"programs_built": 3})
        self.task = task
    def prepare(self, count):
        self.values = self.task.values(count)
    def forward(self):
        return self.values.mean((1, 2), keepdims=True)

serve(Fake)
"""


def start(tmp_path: Path, model: str) -> Any:

    (tmp_path / "fake_worker.py").write_text(WORKER)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    task = {"model": model, "shape": [4, 4, 3], "result": "y", "precision": "f16", "device": "gpu"}
    return WorkerProcess("fake_worker", task, PATIENCE_S, environment=environment)


def test_worker_answers_each_request(tmp_path: Path) -> None:
    worker = start(tmp_path, "there")
    try:
        ready = worker.ready
        assert (ready["version"], ready["notes"]) == ("1.2", ["a note"])
        assert ready["startup"] == {"programs_built": 3}
        assert worker.ask("batch 2", PATIENCE_S)["first_ms"] >= 0
        assert len(worker.ask("run 1 3", PATIENCE_S)["ms"]) == 3
        assert worker.ask("device 5", PATIENCE_S) == {"ms": None}
        path = tmp_path / "y.npy"
        assert worker.ask(f"output {path}", PATIENCE_S)["shape"] == [2, 1, 1, 3]
        first = np.load(path)
        worker.ask("batch 3", PATIENCE_S)
        worker.ask(f"output {path}", PATIENCE_S)
        assert np.array_equal(np.load(path)[:2], first), "the first pictures are those of any batch"
        assert worker.ask("end", PATIENCE_S) == {}
    finally:
        worker.stop()


@pytest.mark.parametrize("request_line", ["jump", "run 1", "batch two"])
def test_worker_reports_what_it_does_not_understand(tmp_path: Path, request_line: str) -> None:
    worker = start(tmp_path, "there")
    with pytest.raises(Exception, match=request_line.split()[-1]):
        worker.ask(request_line, PATIENCE_S)


def test_worker_that_cannot_load_says_why(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="RuntimeError: no such file: absent"):
        start(tmp_path, "absent")


def results() -> dict[str, Any]:
    """What compare.py writes, of two networks; LiteRT failed on one."""

    def batch(count: int, ms: float, ratio: float, device_ms: float | None) -> dict[str, Any]:
        row = {"batch": count, "median_ms": ms, "ratio": ratio, "device_ms": device_ms}
        row |= {"rounds": 9 + count, "quiet_rounds": 5 + count}
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
    context |= {"date": "2026-11-22", "rehearsal": False}
    networks = [{"name": name, "rows": [ours, ncnn]} for name in ("alexnet", "vgg16")]
    networks[1]["rows"] = [ours, ncnn, litert]
    return {"context": context, "networks": networks}


def test_document_shows_times_ratios_and_reasons() -> None:
    text = document.render(results())
    assert "A CPU, 2 cores; A GPU, driver 580.1; commit abc; 2026-11-22: `python -m" in text
    assert "| PhoneBit | 0.25 (0.2) | 0.25 (0.2) |" in text
    assert "| ncnn | 3.5 **14x** | 3.5 **14x** |" in text
    assert "| ncnn | 0.286 | 0.286 |" in text  # thousands of pictures a second at batch 8
    assert "| LiteRT |  | failed |" in text
    assert "- LiteRT failed on VGG16: `start: RuntimeError: no adapter`" in text
    assert "| AlexNet | PhoneBit | 0.50 | 9.50 | 14, then 0 | 512 |" in text


def test_document_says_what_is_exact_and_what_is_not() -> None:
    text = document.render(results())
    assert "- PhoneBit: results equal to the CPU backend's to the last bit." in text
    assert "- ncnn: results within 3.1e-03 of the largest reference value." in text
    assert "- ncnn: results that are no numbers on AlexNet, VGG16." in text
    assert text.count("- ncnn: no batches.") == 1
    assert "Rounds for a number: 10 to 17; at least 6 of them" in text


def test_rehearsal_is_marked() -> None:
    rehearsed = results()
    rehearsed["context"]["rehearsal"] = True
    assert "these numbers say nothing" in document.render(rehearsed)
    assert "these numbers say nothing" not in document.render(results())


def test_plot_is_the_same_file_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    from benchmarks.peers.gpu.throughput_plot import draw

    for name in ("first.svg", "second.svg"):
        draw(results(), tmp_path / name)
    text = (tmp_path / "first.svg").read_text()
    assert text == (tmp_path / "second.svg").read_text()
    assert "AlexNet" in text and "pictures a second" in text and "ncnn" in text


def test_twin_has_a_batch_norm_that_cannot_be_folded() -> None:
    """Else the tests above would not see how writers express one."""
    graph = twin()
    kinds = [type(node.op) for node in graph.nodes]
    assert BatchNorm in kinds
