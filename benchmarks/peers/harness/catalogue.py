"""Which networks are measured, with which engines, from which files: ``catalogue.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Environment = Literal["phonebit", "peers", "tensorflow"]
"""Each has its own Python, since the frameworks' requirements exclude each other."""
Precision = Literal["binary", "binary, int8", "f32", "bf16", "int8", "exact", "f16"]
"""On the CPU "binary" has full-precision layers in f32 (of PhoneBit's, the last is stored as
halves) or int8; on a GPU PhoneBit is "exact", or "f16" outside of binary layers."""


@dataclass(frozen=True)
class Subject:
    """A network: the binary one and its float twin."""

    name: str  # in results and as a folder of files
    title: str  # for people
    # In ``models/networks``; the float twin, and the binary network where no ``zoo`` is given.
    # None: there is no twin.
    definition: str | None
    # In ``tests/support/larq_networks.py``: the binary network as larq-zoo builds it.
    zoo: str | None
    size: int  # height and width of its input
    # Whether larq-zoo's network becomes one for levels of images (``--input u8``): then a first
    # layer with binary weights is a layer of integers.
    reads_levels: bool = False


@dataclass(frozen=True)
class FileKind:
    """One file of a network, written by ``formats/export.py KIND`` in an environment."""

    name: str  # the kind
    file: str  # its name in the network's folder
    environment: Environment  # whose Python writes it
    needs: Sequence[str] = ()  # kinds that must be there before
    companion: str | None = None  # a second file that belongs to it (OpenVINO's weights)


@dataclass(frozen=True)
class Contender:
    """An engine in one precision."""

    engine: str  # name in the results
    title: str  # for people
    worker: str  # ``workers/<worker>_worker.py``
    precision: Precision
    environment: Environment  # whose Python runs the worker
    kind: str  # of the file that it loads
    variant: str = ""  # for the worker, where an engine has several
    device: str = "cpu"  # that the engine is asked for
    is_tuned: bool = False  # PhoneBit after ``phonebit tune``

    @property
    def key(self) -> str:
        """Distinct for every contender."""
        return f"{self.engine} {self.precision}"

    @property
    def is_binary(self) -> bool:
        """Whether it runs the binary network, not the twin."""
        return self.kind in ("pbit", "pbit_f16", "pbit_int8", "larq", "openvino_binary")

    def runs(self, batch: int) -> bool:
        """Whether it suits batches of this size: streams compute images side by side."""
        return batch > 1 or self.variant != "streams"


CATALOGUE: Final = json.loads(Path(__file__).with_suffix(".json").read_text())
SUBJECTS: Final = tuple(Subject(**record) for record in CATALOGUE["subjects"])
KINDS: Final = {record["name"]: FileKind(**record) for record in CATALOGUE["kinds"]}
CONTENDERS: Final = tuple(Contender(**record) for record in CATALOGUE["contenders"])
GPU_CONTENDERS: Final = tuple(Contender(**record) for record in CATALOGUE["gpu_contenders"])
OURS: Final = CONTENDERS[0]


def subject(name: str) -> Subject:
    """The network of this name."""
    return next(entry for entry in SUBJECTS if entry.name == name)


def contenders_for(entry: Subject) -> list[Contender]:
    """All that run the network or its twin, PhoneBit first."""
    return [each for each in CONTENDERS if each.is_binary or entry.definition is not None]


def kinds_for(entry: Subject, contenders: Iterable[Contender], *more: str) -> list[FileKind]:
    """Every file that these contenders need, and more, in an order in which they can be written."""
    wanted = ["zoo"] if entry.zoo is not None else []
    wanted += ["images", *(each.kind for each in contenders), *more]
    if entry.definition is not None:
        wanted.append("reference")
    ordered: list[str] = []
    for name in wanted:
        ordered += [need for need in (*KINDS[name].needs, name) if need not in ordered]
    return [KINDS[name] for name in ordered]
