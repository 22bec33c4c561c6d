"""What ``phonebit.onnxruntime`` and its provider say of wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from provider_models import Nodes, numbers, whole  # noqa: E402

import phonebit.onnxruntime  # noqa: E402
from phonebit import plugins  # noqa: E402
from phonebit.onnxruntime import sessions  # noqa: E402

pytestmark = pytest.mark.torch  # CI has ONNX Runtime where PyTorch is


@pytest.fixture(scope="module")
def session() -> Any:
    return phonebit.onnxruntime.session(whole(), threads=1)


def test_values_that_a_network_does_not_take(session: Any) -> None:
    with pytest.raises(Exception, match=r"input 'x': NaN at image 0, .*expected finite numbers"):
        session.run(None, {"x": numbers(1) * np.float32("nan")})
    assert session.run(None, {"x": numbers(2)})[0].shape == (2, 5)


def test_a_shape_that_the_model_leaves_open_but_the_file_does_not() -> None:
    compiled = compiled_of(whole())
    for dim in compiled.graph.input[0].type.tensor_type.shape.dim:
        dim.Clear()
    loaded = phonebit.onnxruntime.session(compiled)
    wrong = np.zeros((2, 32, 6, 6), np.float32)
    with pytest.raises(
        Exception, match=r"input 0: got shape \(2, 32, 6, 6\), expected \(2, 32, 6, 7"
    ):
        loaded.run(None, {"x": wrong})


def compiled_of(model: onnx.ModelProto) -> onnx.ModelProto:
    return sessions._compiled(model, "auto")[0]


DAMAGES: dict[str, tuple[str, Any, str]] = {
    "no tensors": ("notes", b"bytes 10", "does not name a file's tensors"),
    "other tensors": ("notes", b"bytes %d in plain 7 out plain 7", "are not those of the file"),
    "impossible sizes": ("notes", b"bytes %d in plain 9999999999999 out plain 7", "not name a"),
    "another file": ("ep_cache_context", b"x" * 100, "the file in the node has"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_node_is_refused_in_a_sentence(case: str) -> None:
    name, content, message = DAMAGES[case]
    compiled = compiled_of(whole())
    attributes = {each.name: each for each in compiled.graph.node[0].attribute}
    size = len(attributes["ep_cache_context"].s)
    attributes[name].s = content % size if b"%d" in content else content
    with pytest.raises(Exception, match=message):
        phonebit.onnxruntime.session(compiled)


def test_a_damaged_file_in_a_node_is_refused_in_a_sentence() -> None:
    compiled = compiled_of(whole())
    attribute = next(a for a in compiled.graph.node[0].attribute if a.name == "ep_cache_context")
    attribute.s = attribute.s[:200] + b"?" + attribute.s[201:]
    with pytest.raises(Exception, match=r"memory of .* bytes: "):
        phonebit.onnxruntime.session(compiled)


def test_a_model_without_a_binary_layer_runs_on_the_cpu_provider() -> None:
    model = Nodes().add("Relu").model()
    with pytest.warns(phonebit.PhoneBitWarning, match="no part .*\n.*has no binary layer"):
        session = phonebit.onnxruntime.session(model)
    assert session.get_providers() == ["CPUExecutionProvider"]
    x = numbers(2)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))
    with pytest.raises(phonebit.ConversionError, match="ModelProto: no part of the model runs on"):
        phonebit.onnxruntime.compile_model(model, "unused.onnx")


def test_arguments_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(phonebit.InputError, match=r"threads \(expected 0 to 1024, got -1"):
        phonebit.onnxruntime.session(whole(), threads=-1)
    (tmp_path / "net.onnx").write_text("no model")
    with pytest.raises(phonebit.ConversionError, match=r"net.onnx: is damaged, or no ONNX file"):
        phonebit.onnxruntime.session(tmp_path / "net.onnx")
    with pytest.raises(phonebit.ConversionError, match=r"absent.onnx"):
        phonebit.onnxruntime.session(tmp_path / "absent.onnx")
    with pytest.raises(phonebit.InputError, match="a folder"):
        phonebit.onnxruntime.compile_model(whole(), tmp_path)


def test_an_option_of_the_provider_that_is_wrong(session: Any) -> None:
    options = onnxruntime.SessionOptions()
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "PhoneBit"]
    options.add_provider_for_devices(devices, {"threads": "many"})
    with pytest.raises(Exception, match="option threads: got 'many', expected 0"):
        onnxruntime.InferenceSession(compiled_of(whole()).SerializeToString(), options)


def test_operators_of_a_version_that_is_newer() -> None:
    with pytest.raises(Exception, match=r"(?i)opset 99"):
        phonebit.onnxruntime.session(Nodes().binary(1).model(opset=99))


def test_an_onnx_runtime_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.22.1")
    with pytest.raises(phonebit.ConversionError, match=r"1.23 or later, got 1.22.1.*\[onnxruntime"):
        phonebit.onnxruntime.session(whole())


def test_an_installation_without_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Elsewhere:
        __file__ = str(tmp_path / "_runtime.so")

    monkeypatch.setattr(plugins, "load_runtime", Elsewhere)
    with pytest.raises(phonebit.DeviceError, match="no library for ONNX Runtime and LiteRT"):
        phonebit.onnxruntime.library()
