"""What a loaded network consists of and what runs it: the part of ``Network`` that only reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from phonebit.display import html_table, printable
from phonebit.errors import InputError
from phonebit.layer_info import (
    NUMBERS,
    LayerInfo,
    TensorInfo,
    arrays_of,
    layer_cells,
    summary_text,
)
from phonebit.network.file_metadata import heads_of, labels_of, parse_metadata, preprocessing_of

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.detection.head import DetectionHead
    from phonebit.images.preprocessing import Preprocessing
    from phonebit.planner import ExecutionPlan


class NetworkDescription:
    """Base of ``Network``: names, shapes, layers, sizes, device."""

    def __init__(self, engine: _runtime.Network, path: Path) -> None:
        """Wrap a runtime object; use ``Network.load`` instead."""
        self._open_engine: _runtime.Network | None = engine
        self._path = path
        self._metadata = parse_metadata(engine.metadata)
        arrays = arrays_of(self._metadata)
        self._inputs = tuple(TensorInfo.of(each, arrays) for each in engine.inputs)
        self._outputs = tuple(TensorInfo.of(each, arrays) for each in engine.outputs)
        self._layers = tuple(map(LayerInfo.of, engine.layers))
        self._labels = labels_of(engine, self._metadata)
        self._preprocessing = preprocessing_of(engine, self._inputs, self._metadata)
        self._detection = heads_of(engine, self._outputs)

    @property
    def _engine(self) -> _runtime.Network:
        if self._open_engine is None:
            raise InputError("the network is closed", where=str(self._path), hint="load it again")
        return self._open_engine

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What ``forward`` takes, in order."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What ``forward`` returns, in order."""
        return self._outputs

    @property
    def layers(self) -> tuple[LayerInfo, ...]:
        """The ops in execution order."""
        return self._layers

    @property
    def path(self) -> Path:
        """The file that was loaded."""
        return self._path

    @property
    def device(self) -> str:
        """What runs this network: "cpu:avx512", "gpu:0 NVIDIA H200"."""
        return self._engine.device

    @property
    def isa(self) -> str:
        """Instruction set that runs this network, e.g. "avx512"; "opencl" on such a device."""
        return self._engine.isa

    @property
    def plan_key(self) -> str:
        """What plans for its two processors are kept under in files; "" on one processor."""
        return self._engine.plan_key

    @property
    def plan(self) -> ExecutionPlan | None:
        """Who computes what on "gpu+cpu"; None on one processor."""
        from phonebit.planner import ExecutionPlan

        return ExecutionPlan.from_tuple(self._engine.plan) if self.plan_key else None

    @property
    def coexec(self) -> dict[str, Any]:
        """How the two processors of "gpu+cpu" work together; empty on one processor.

        ``sharing`` and ``synchronization`` as in ``Network.load``; ``is_on_trial``: passes take
        turns, the first ones or, later, those after slow ones; ``plan_ms``, ``cpu_ms``,
        ``gpu_ms``: what the last auto-selection found, median milliseconds of an image (0 before
        its end, and of who took no part); ``is_on_cpu_alone``, ``is_on_gpu_alone``: the plan does
        not run, since one processor is faster, or the GPU has failed, or the plan leaves everything
        to the CPU.
        """
        return self._engine.coexec if self.plan_key else {}

    @property
    def startup(self) -> dict[str, float]:
        """What loading took on an OpenCL device, by name.

        ``programs_built`` from source in ``build_ms``, ``programs_loaded`` from the cache folder,
        ``cache_entries_rejected`` there, ``self_tests_run``, ``uses_command_buffer`` (0 or 1).
        """
        return dict(self._engine.startup)

    @property
    def threads(self) -> int:
        """CPU threads that an inference uses."""
        return self._engine.threads

    @property
    def memory(self) -> dict[str, int]:
        """Memory in bytes.

        ``arena_bytes`` (intermediate tensors of one input), ``lower_bound_bytes`` (the minimum that
        any plan of them needs), ``scratch_bytes``, ``weight_bytes`` (re-packed), ``file_bytes``.
        """
        return dict(self._engine.memory)

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's JSON metadata: name, producer, origin. Never affects the results."""
        return self._metadata

    @property
    def labels(self) -> list[str]:
        """Class names of the first output (or of its boxes), or an empty list."""
        return list(self._labels)

    @property
    def preprocessing(self) -> dict[str, Preprocessing]:
        """Image preprocessing by input name, where the file has it."""
        return dict(self._preprocessing)

    @property
    def detection(self) -> dict[str, DetectionHead]:
        """What boxes the outputs mean, by output name, where the file tells."""
        return dict(self._detection)

    def summary(self) -> str:
        """Text table of the layers, with totals below it."""
        return summary_text(self._inputs, self._outputs, self._layers, self.memory)

    def __repr__(self) -> str:
        """One line: file, inputs, outputs, what runs it."""
        inputs = ", ".join(info.text for info in self._inputs)
        outputs = ", ".join(info.text for info in self._outputs)
        device = f"{self.device}, threads={self.threads}" if self._open_engine else "closed"
        path = printable(str(self._path))
        return f"Network('{path}', {inputs} -> {outputs}, {len(self._layers)} layers, {device})"

    def _repr_html_(self) -> str:
        """For notebooks: the same line above a table of the layers."""
        titles, *rows = layer_cells(self._layers)
        return html_table(repr(self), titles, rows, NUMBERS)
