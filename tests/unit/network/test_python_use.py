"""``phonebit.Network`` in Python programs: calls, other arrays, copies, workers, notebooks."""

from __future__ import annotations

import copy
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import phonebit
from phonebit import DeviceError, InputError, Network
from phonebit.converter.ops import MaxPool2D
from phonebit.converter.writer import to_bytes
from phonebit.network.input_checks import check_inputs
from phonebit.network.random_inputs import random_inputs
from support.engine_net import SAME3, Net

Levels = NDArray[np.uint8]


@pytest.fixture
def network(u8_file: Path) -> Network:
    return Network.load(u8_file, device="cpu", threads=1)


@pytest.fixture
def batch(network: Network) -> Levels:
    return random_inputs(network.inputs, 3)["picture"]


class Lent:
    """Another library's array: NumPy sees nothing of it but its memory."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_a_network_is_called_like_a_function(network: Network, batch: Levels) -> None:
    np.testing.assert_array_equal(network(batch), network.forward(batch))


def test_one_input_may_be_an_array_whatever_comes_out(tmp_path: Path) -> None:
    net = Net("two_outputs")
    value = net.input("x", (4, 4, 8))
    pooled = [net.op(name, MaxPool2D(SAME3), value) for name in ("a", "b")]
    path = tmp_path / "two_outputs.pbit"
    path.write_bytes(to_bytes(net.done(*pooled)))
    network, x = Network.load(path, device="cpu"), np.ones((1, 4, 4, 8), np.float32)
    by_name = network({"x": x})
    assert set(by_name) == {"a", "b"}
    (streamed,) = network.stream([x])
    for results in (network(x), streamed):
        assert results.keys() == by_name.keys()
        for name, array in results.items():
            np.testing.assert_array_equal(array, by_name[name])
    with pytest.raises(InputError, match=r"2 outputs \(expected a dict with the keys 'a', 'b'"):
        network(x, np.zeros((1, 4, 4, 8), np.float32))


def test_arrays_of_other_libraries_are_read_without_a_copy(network: Network, batch: Levels) -> None:
    (array,) = check_inputs(Lent(batch), network.inputs)
    assert np.shares_memory(array, batch)
    np.testing.assert_array_equal(network(Lent(batch)), network(batch))
    with pytest.raises(InputError, match=r"expected uint8, got float64.*astype"):
        network(Lent(batch.astype(np.float64)))


@pytest.mark.torch
def test_tensors_of_pytorch(network: Network, f32_file: Path, batch: Levels) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    expected = network(batch)
    np.testing.assert_array_equal(network(torch.from_numpy(batch)), expected)
    np.testing.assert_array_equal(
        network({"picture": torch.from_numpy(batch)})["probabilities"], expected
    )
    channels_last = torch.zeros(2, 1, 28, 28).to(memory_format=torch.channels_last)
    real = Network.load(f32_file, device="cpu")
    (array,) = check_inputs(channels_last.permute(0, 2, 3, 1), real.inputs)
    assert array.ctypes.data == channels_last.data_ptr()
    for tensor, problem in (
        (torch.zeros(1, 28, 28, 1).requires_grad_(), r"requires? grad.*x\.detach\(\)\.cpu\(\)"),
        (torch.zeros(1, 28, 28, 1, device="meta"), "NumPy cannot read it.*torch.Tensor"),
        (torch.zeros(1, 28, 28, 1, dtype=torch.float64), r"x\.float\(\)"),
        (torch.zeros(1, 1, 28, 28), r"x\.movedim\(-3, -1\)"),
    ):
        with pytest.raises(InputError, match=problem):
            real(tensor)


@pytest.mark.torch
def test_a_network_in_workers_of_pytorch_s_data_loader(network: Network, batch: Levels) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    loader = torch.utils.data.DataLoader(
        list(batch), batch_size=None, num_workers=1, multiprocessing_context="spawn",
        collate_fn=Scores(network),
    )  # fmt: skip
    np.testing.assert_array_equal(np.concatenate(list(loader)), network(batch))


class Scores:
    """What each worker process computes with a network of its own."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def __call__(self, image: Levels) -> NDArray[Any]:
        return self.network(image[None])


def test_a_network_in_another_process(network: Network, batch: Levels) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        scores = pool.map(Scores(network), batch)
    np.testing.assert_array_equal(np.concatenate(scores), network(batch))


def test_copies_have_the_file_and_the_options(
    u8_file: Path, batch: Levels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(u8_file.parent)
    network = Network.load(u8_file.name, device="cpu:scalar", threads=2, hint="power")
    content = pickle.dumps(network)
    monkeypatch.chdir(tmp_path)
    for other in (pickle.loads(content), copy.deepcopy(pickle.loads(content))):
        assert other.path == u8_file.absolute()
        assert (other.isa, other.threads) == ("scalar", 2)
        np.testing.assert_array_equal(other(batch), network(batch))


def test_a_network_on_a_pyopencl_queue_is_not_copied(u8_file: Path, opencl_queue: Any) -> None:
    with pytest.raises(
        DeviceError, match=r"CommandQueue of pyopencl\); load it on a device by name"
    ):
        copy.deepcopy(Network.load(u8_file, opencl_queue))


def test_a_closed_network_tells_its_layers_and_computes_nothing(
    u8_file: Path, batch: Levels
) -> None:
    with Network.load(u8_file, device="cpu") as network:
        network(batch)
    network.close()
    assert repr(network).endswith("closed)")
    assert len(network.layers) == 12
    for use in (lambda: network(batch), lambda: network.device, lambda: pickle.dumps(network)):
        with pytest.raises(InputError, match=r"u8\.pbit: the network is closed; load it again"):
            use()


def test_an_inference_goes_on_when_another_thread_closes_the_network(
    network: Network, batch: Levels
) -> None:
    expected, engine = network(batch), network._engine

    class ClosedMeanwhile:
        plan_key, warnings = engine.plan_key, engine.warnings

        def forward(self, inputs: Any) -> Any:
            network.close()
            return engine.forward(inputs)

    network._open_engine = ClosedMeanwhile()  # type: ignore[assignment]
    np.testing.assert_array_equal(network(batch), expected)
    assert repr(network).endswith("closed)")


def test_bench_measures_as_the_command_does(network: Network, batch: Levels) -> None:
    ticks: list[None] = []
    for x, size in ((batch, 3), ({"picture": batch}, 3), (None, 2)):
        found = network.bench(x, runs=7, warmup=1, batch=2, progress=lambda: ticks.append(None))
        assert (found.batch, len(found.latencies_ms)) == (size, 7)
        assert found.to_dict()["min_ms"] <= found.median_ms
        assert f"{found.median_ms:.3f} ms median" in repr(found)
    assert len(ticks) == 30
    with pytest.raises(InputError, match="runs >= 1"):
        network.bench(runs=0)


class Cells(HTMLParser):
    """The texts of a page's table cells; tags must match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_tables_and_short_lines(network: Network, checkpoint: Path) -> None:
    report = phonebit.convert(checkpoint, name="<b>net")
    for shown, layers in ((network, network.layers), (report, report.layers)):
        assert len(repr(shown)) < 300 and "\n" not in repr(shown)
        texts = Cells(shown._repr_html_()).texts
        assert {layer.name for layer in layers} <= set(texts)
    assert "<b>net" in " ".join(Cells(report._repr_html_()).texts)


def test_the_library_logs_and_prints_nothing(
    checkpoint: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with caplog.at_level(logging.INFO, "phonebit"):
        phonebit.convert(checkpoint, tmp_path / "net.pbit")
        Network.load(tmp_path / "net.pbit", device="cpu")
    for beginning in ("imported ", "converted: ConversionReport", "loaded "):
        assert any(record.message.startswith(beginning) for record in caplog.records), beginning
    assert {record.name.partition(".")[0] for record in caplog.records} == {"phonebit"}
    assert capfd.readouterr() == ("", "")


def test_a_typed_program_runs(u8_file: Path) -> None:
    """CI's lint step takes the same program through ``mypy --strict``."""
    program = Path(__file__).with_name("typed_program.py")
    done = subprocess.run(
        [sys.executable, "-P", str(program), str(u8_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "ankle_boot" in done.stdout and "the network is closed" in done.stdout


def test_python_dash_m(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "phonebit", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
    assert (done.returncode, done.stdout) == (0, f"phonebit {phonebit.__version__}\n")
