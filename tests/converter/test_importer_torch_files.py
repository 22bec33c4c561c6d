"""Files of PyTorch: checkpoints, exported programs, and what is said about those that hold none."""

from __future__ import annotations

import argparse
import collections
import datetime
import enum
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch_checks import assert_equal_to_pytorch  # noqa: E402

from phonebit.converter.importers.torch.checkpoint import parameters_of  # noqa: E402
from phonebit.converter.importers.torch.importer import import_torch, open_torch  # noqa: E402
from phonebit.errors import ConversionError  # noqa: E402

SHAPE = (1, 3, 6, 6)
FACTORY = """
import torch
from torch import nn

def build():
    flat = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten())
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), flat, nn.Linear(64, 2))

def nothing():
    return 3

def broken():
    raise RuntimeError("out of flour")
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A module that ``bakery:build`` in the current folder builds with other parameters."""
    (tmp_path / "bakery.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "bakery", raising=False)
    torch.manual_seed(3)
    flat = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten())
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), flat, nn.Linear(64, 2))
    return module.eval()


def same_results(path: Path, module: nn.Module, **options: Any) -> list[str]:
    """Imports a file, compares it with a live module, and returns the graph's notes."""
    source = open_torch(path, **options)
    maps = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32)
    assert source.graph.name == path.stem
    values = assert_equal_to_pytorch(source, {source.graph.inputs[0]: maps}, tolerance=1e-6)
    with torch.no_grad():
        expected = module(torch.from_numpy(np.moveaxis(maps, 3, 1))).numpy()
    result = values[source.graph.outputs[0]].reshape(expected.shape)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)
    return source.graph.notes


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3, "best_prec1": torch.tensor(88.0)},
        lambda state: {"model": {f"module.{name}": tensor for name, tensor in state.items()}},
        lambda state: {f"_orig_mod.module.{name}": tensor for name, tensor in state.items()},
        lambda state: {n: t for n, t in state.items() if not n.endswith("num_batches_tracked")},
    ],
    ids=["plain", "state_dict", "model, module.", "compiled, parallel", "old"],
)
def test_checkpoints_load_however_training_scripts_wrap_them(
    wrap: Any, network: nn.Module, tmp_path: Path
) -> None:
    path = tmp_path / "weights.pth"
    torch.save(wrap(network.state_dict()), path)
    assert same_results(path, network, model="bakery:build", input_shape=SHAPE) == []


def test_flat_weights_are_read_in_the_modules_shape_and_that_is_noted(
    network: nn.Module, tmp_path: Path
) -> None:
    state = network.state_dict()
    state["0.weight"] = state["0.weight"].reshape(-1, 1)
    torch.save(state, tmp_path / "flat.pt")
    notes = same_results(tmp_path / "flat.pt", network, model="bakery:build", input_shape=SHAPE)
    assert notes == ["0.weight: (108, 1) in the file, read as (4, 3, 3, 3)"]


def test_exported_programs_load_whatever_their_suffix(network: nn.Module, tmp_path: Path) -> None:
    exported = torch.export.export(network, (torch.zeros(SHAPE),), strict=False)
    torch.export.save(exported, tmp_path / "net.pt2")
    (tmp_path / "net.bin").write_bytes((tmp_path / "net.pt2").read_bytes())
    assert same_results(tmp_path / "net.pt2", network) == []
    assert same_results(tmp_path / "net.bin", network) == []


def test_all_keys_that_do_not_fit_are_listed_at_once(network: nn.Module, tmp_path: Path) -> None:
    state = network.state_dict()
    state["5.weight"] = state.pop("3.weight")
    state["0.bias"] = torch.zeros(7)
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(ConversionError) as caught:
        import_torch(tmp_path / "other.pth", model="bakery:build", input_shape=SHAPE)
    assert caught.value.problems == [
        "1 parameters missing from the file: 3.weight",
        "1 parameters not in the module: 5.weight",
        "0.bias: shape (7,) in the file, (4,) needed",
    ]


@pytest.mark.parametrize("stored", [(2, 64), (64, 2), (2, 8, 8), (4, 32)])
def test_weights_are_never_read_in_another_order(
    stored: tuple[int, ...], network: nn.Module, tmp_path: Path
) -> None:
    """As many elements are not the same elements: dense weights of Keras are (in, out)."""
    state = network.state_dict()
    state["3.weight"] = state["3.weight"].reshape(stored)
    torch.save(state, tmp_path / "other.pth")
    options: dict[str, Any] = {"model": "bakery:build", "input_shape": SHAPE}
    if stored == (2, 64):
        assert same_results(tmp_path / "other.pth", network, **options) == []
        return
    with pytest.raises(ConversionError) as caught:
        import_torch(tmp_path / "other.pth", **options)
    (problem,) = caught.value.problems
    assert problem.startswith(f"3.weight: shape {stored} in the file, (2, 64) needed; ")
    assert ("save it with .permute() or .t()" in problem) == (stored == (64, 2))


def test_axes_of_size_one_may_come_and_go(network: nn.Module, tmp_path: Path) -> None:
    state = network.state_dict()
    state["3.weight"] = state["3.weight"].view(2, 64, 1, 1)
    torch.save(state, tmp_path / "map.pth")
    notes = same_results(tmp_path / "map.pth", network, model="bakery:build", input_shape=SHAPE)
    assert notes == ["3.weight: (2, 64, 1, 1) in the file, read as (2, 64)"]


class Colour(enum.Enum):
    RED = 1


class Options(dict):  # type: ignore[type-arg]
    """A configuration that is a dict, with attributes."""


class Slots:
    """An object whose state is a tuple."""

    __slots__ = ("a",)

    def __init__(self) -> None:
        self.a = 1


def other_objects(network: nn.Module) -> dict[str, Any]:
    options = Options(width=64)
    options.depth = [3, Colour.RED]  # type: ignore[attr-defined]
    return {
        "Namespace": argparse.Namespace(lr=0.1, sizes=[1, 2]),
        "NumPy's number": np.float64(93.1),
        "NumPy's array": np.arange(12).reshape(3, 4),
        "optimizer": torch.optim.SGD(network.parameters(), 0.1, momentum=0.9),
        "enum": {Colour.RED: Colour.RED},
        "options": options,
        "defaultdict": collections.defaultdict(list, loss=[0.5, 0.25]),
        "path": Path("runs"),
        "slots": Slots(),
        "function": other_objects,
        "date": datetime.datetime(2024, 2, 3),
    }


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", other_objects(nn.Linear(1, 1)))
def test_objects_next_to_the_tensors_are_left_alone(
    kind: str, zipped: bool, network: nn.Module, tmp_path: Path
) -> None:
    extra = other_objects(network)[kind]
    path = tmp_path / "weights.pth"
    content = {"args": extra, "state_dict": network.state_dict(), "again": extra}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    assert same_results(path, network, model="bakery:build", input_shape=SHAPE) == []


def test_tensors_inside_of_a_dict_of_another_class_are_found(
    network: nn.Module, tmp_path: Path
) -> None:
    torch.save(Options(state_dict=Options(network.state_dict())), tmp_path / "odd.pth")
    options = {"model": "bakery:build", "input_shape": SHAPE}
    assert same_results(tmp_path / "odd.pth", network, **options) == []


def nested(kind: str) -> dict[str, Any]:
    innermost: dict[str, Any] = {}
    found = innermost
    if kind == "cycle":
        innermost["model"] = innermost
    for _ in range(40 if kind == "doubled" else 5000 if kind == "deep" else 0):
        found = {"model": found, "net": found, "module": found, "weights": found}
    return found


@pytest.mark.parametrize("kind", ["cycle", "doubled", "deep"])
def test_dicts_in_dicts_are_looked_at_once(kind: str) -> None:
    """Of 40, each with the next one under four names, there are 4^40 ways down."""
    assert parameters_of(nested(kind)) == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("module", "got an object of torch.nn.modules.linear.Linear"),
        ("script", "is a TorchScript archive"),
        ("number", "got a dict with epoch"),
    ],
)
@pytest.mark.parametrize("model", ["bakery:build", None])
def test_what_holds_no_parameters_is_called_what_it_is(
    kind: str, message: str, model: str | None, network: nn.Module, tmp_path: Path
) -> None:
    bad_file(kind, tmp_path / "bad.pth")
    with pytest.raises(ConversionError) as caught:
        import_torch(tmp_path / "bad.pth", model=model, input_shape=SHAPE)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass model='package.module:factory'"),
        ({"model": "bakery:build"}, "pass example_input, or input_shape"),
        ({"model": "bakery"}, "expected package.module:factory, got 'bakery'"),
        ({"model": "bakery:cake"}, "AttributeError: module 'bakery' has no attribute 'cake'"),
        ({"model": "butchery:build"}, "No module named 'butchery'"),
        ({"model": "bakery:broken"}, "RuntimeError: out of flour"),
        ({"model": "bakery:nothing"}, "expected a torch.nn.Module, got int"),
        ({"model": "bakery:build", "input_shape": (1, 0, 6)}, "expected positive sizes"),
        ({"model": "bakery:build", "input_shape": (1, 5, 6, 6)}, "to have 3 channels"),
    ],
)
def test_a_checkpoint_says_what_else_is_needed(
    options: dict[str, Any], message: str, network: nn.Module, tmp_path: Path
) -> None:
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    with pytest.raises(ConversionError) as caught:
        import_torch(tmp_path / "weights.pth", **options)
    assert message in str(caught.value)


def bad_file(kind: str, path: Path) -> None:
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "noise":
        path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 4)
    elif kind == "cut":
        torch.save({"w": torch.zeros(1000)}, path)
        path.write_bytes(path.read_bytes()[:3000])
    elif kind == "names":
        exported = torch.export.export(nn.Linear(2, 2), (torch.zeros(1, 2),), strict=False)
        torch.export.save(exported, path)
        path.write_bytes(path.read_bytes().replace(b"/models/", b"/mod\xa7ls/"))
    elif kind == "module":
        torch.save(nn.Linear(2, 2), path)
    elif kind == "script":
        torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), path)
    elif kind == "number":
        torch.save({"epoch": 3}, path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", [".pth", ".pt2"])
@pytest.mark.parametrize(
    "kind", ["missing", "empty", "noise", "cut", "names", "module", "script", "number"]
)
def test_bad_files_are_named_and_nothing_in_them_is_run(
    kind: str, suffix: str, network: nn.Module, tmp_path: Path
) -> None:
    path = tmp_path / f"bad{suffix}"
    bad_file(kind, path)
    with pytest.raises(ConversionError) as caught:
        import_torch(path, model="bakery:build", input_shape=SHAPE)
    assert caught.value.where == str(path) and "weights_only" not in str(caught.value)
