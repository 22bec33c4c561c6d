"""What the workers read: a network in each engine's format, and results to compare with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import phonebit
from benchmarks.peers.gpu.ncnn_format import write_ncnn
from benchmarks.peers.gpu.serving import Task
from phonebit.converter import interpreter
from phonebit.converter.ir import Graph
from phonebit.models.networks import NETWORKS, build


@dataclass
class Prepared:
    """A network's files.

    Attributes:
        name: in ``phonebit.models.networks``.
        shape: (height, width, channels) of a picture.
        result: name of the output.
        reads_levels: whether the .pbit file reads uint8.
        models: file by engine.
        failures: why there is none, by engine.
        references: .npy file of the first picture's result, by form: of the binary network by the
            CPU backend, of the float twin by the converter's interpreter.
    """

    name: str
    shape: tuple[int, int, int]
    result: str
    reads_levels: bool
    models: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)

    def task(self, engine: str, precision: str, device: str) -> Task:
        """What a worker is started with."""
        return Task(self.models[engine], self.shape, self.result, precision, device)

    def reference(self, form: str) -> NDArray[np.float32]:
        """(1, H, W, C)."""
        array: NDArray[np.float32] = np.load(self.references[form])
        return array


def prepare(name: str, folder: Path) -> Prepared:
    """Makes a network's files, or finds those that an earlier run with this folder left.

    Args:
        name: in ``phonebit.models.networks``.
        folder: may be deleted at any time.
    """
    folder = folder / name
    index = folder / "prepared.json"
    if index.exists():
        fields = json.loads(index.read_text())
        return Prepared(**{**fields, "shape": tuple(fields["shape"])})
    folder.mkdir(parents=True, exist_ok=True)
    twin = NETWORKS[name]("float")
    shape = twin.types[twin.inputs[0]].shape
    reads_levels = NETWORKS[name].input_dtype == "u8"
    prepared = Prepared(name, shape, twin.outputs[0], reads_levels)
    _write_pbit(prepared, folder)
    _write_peers(prepared, twin, folder)
    _write_reference(prepared, twin, folder)
    index.write_text(json.dumps(vars(prepared)))
    return prepared


def _write_pbit(prepared: Prepared, folder: Path) -> None:
    path = folder / f"{prepared.name}.pbit"
    build(prepared.name, path)
    prepared.models["phonebit"] = str(path)
    task = prepared.task("phonebit", "exact", "cpu")
    pictures = task.levels(1) if prepared.reads_levels else task.values(1)
    result = phonebit.Network.load(path, device="cpu").forward(pictures)
    assert isinstance(result, np.ndarray), "one output, on the host"
    _save(prepared, "binary", result, folder)


def _write_peers(prepared: Prepared, twin: Graph, folder: Path) -> None:
    writers = {"ncnn": _ncnn_file, "litert": _litert_file, "torch": torch_file}
    for engine, write in writers.items():
        try:
            prepared.models[engine] = str(write(twin, folder / prepared.name))
        except ImportError as error:
            prepared.failures[engine] = f"{type(error).__name__}: {error}"


def _ncnn_file(twin: Graph, stem: Path) -> Path:
    return write_ncnn(twin, stem.parent, stem.name)[0]


def _litert_file(twin: Graph, stem: Path) -> Path:
    from benchmarks.peers.gpu.tflite_format import write_tflite

    path = stem.with_suffix(".tflite")
    write_tflite(twin, path)
    return path


def torch_file(twin: Graph, stem: Path) -> Path:
    """The module that ``torch_worker`` loads, at ``stem`` with the suffix .pt."""
    import torch

    from benchmarks.peers.formats.torch_format import FloatNetwork

    path = stem.with_suffix(".pt")
    torch.save(FloatNetwork(twin).eval(), path)
    return path


def _write_reference(prepared: Prepared, twin: Graph, folder: Path) -> None:
    pictures = prepared.task("ncnn", "f32", "cpu").values(1)
    results = interpreter.run(twin, {twin.inputs[0]: pictures})
    _save(prepared, "float", results[prepared.result], folder)


def _save(prepared: Prepared, form: str, result: NDArray[np.float32], folder: Path) -> None:
    path = folder / f"{form}_reference.npy"
    np.save(path, result.reshape(1, *_map_shape(result)))
    prepared.references[form] = str(path)


def _map_shape(result: NDArray[np.float32]) -> tuple[int, int, int]:
    """(H, W, C) of a batch of one, whose features without a map are (1, C)."""
    return result.shape[1:] if result.ndim == 4 else (1, 1, result.shape[1])
