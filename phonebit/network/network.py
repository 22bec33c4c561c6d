"""A loaded network: the Python face of the C++ runtime."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.devices.loading import (
    Cores,
    EngineOptions,
    Hint,
    Precision,
    Sharing,
    Synchronization,
    open_engine,
)
from phonebit.errors import DeviceError, InputError, PhoneBitWarning
from phonebit.layer_info import LayerProfile, make_profiles
from phonebit.network.description import NetworkDescription
from phonebit.network.device_arrays import forward_on_device, holds_device_arrays
from phonebit.network.host_outputs import named_results
from phonebit.network.input_checks import check_inputs

if TYPE_CHECKING:
    import pyopencl as cl
    from pyopencl import array as cl_array

    from phonebit import _runtime
    from phonebit.devices.target import DeviceLike
    from phonebit.planner import ExecutionPlan

Array = NDArray[Any]


class Network(NetworkDescription):
    """A ``.pbit`` file, loaded and ready to run.

    Weights are read from the file once, at load; an inference allocates only its results. One
    object may be used from several threads: its calls are serialised, and the interpreter lock is
    released while they compute. Threads that should run concurrently load a network each.

    Example::

        network = Network.load("model.pbit")
        scores = network.forward(images)  # (N, classes)
    """

    def __init__(self, engine: _runtime.Network, path: Path) -> None:
        """Wrap a runtime object; use ``Network.load`` instead."""
        super().__init__(engine, path)
        self._queue: cl.CommandQueue | None = None
        self._known_warnings = len(engine.warnings)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: DeviceLike = "auto",
        threads: int = 0,
        precision: Precision = "exact",
        plan: ExecutionPlan | None = None,
        sharing: Sharing = "auto",
        synchronization: Synchronization = "auto",
        trial: bool = True,
        cores: Cores = "any",
        hint: Hint = "none",
        in_place: bool = False,
        max_memory_bytes: int = 0,
        max_work: float = 0.0,
    ) -> Network:
        """Load a ``.pbit`` file.

        The first use of an OpenCL device compiles and tests kernels; both are kept in the cache
        folder. What ``phonebit tune`` found for the device serves.

        Args:
            path: the file; it may change or vanish afterwards, unless ``in_place``.
            device: "auto": the first GPU of OpenCL, or else the CPU; "cpu": the best instruction
                set of this machine (or the one that the environment variable PHONEBIT_CPU names);
                "cpu:avx2" and the like: that one; "gpu", "gpu:1": an OpenCL device as
                ``phonebit devices`` counts them, GPUs first; "gpu+cpu", "gpu:1+cpu:avx2": that
                device and the CPU together, as a plan says (docs/coexecution.md); a
                ``pyopencl.Device``, a ``Context`` with one device, or an in-order ``CommandQueue``,
                on which the network then works.
            threads: CPU threads of an inference; 0: one per usable processor.
            precision: "exact": float32, binary layers with the same bits everywhere; "f16": an
                OpenCL device keeps float tensors in half precision (the CPU stays exact);
                "fast": an OpenCL device as with "f16"; the CPU computes full-precision layers in
                int8 if the file stores their weights as F16 or I8. Other layers stay exact, and a
                warning names them.
            plan: for "gpu+cpu": who computes what; None: the plan that the file has for these two
                processors (``phonebit plan`` writes it), or else everything on the GPU.
            sharing: for "gpu+cpu": how one reaches what the other wrote: "svm" (fine-grained shared
                virtual memory), "map" (zero-copy), "copy", or "auto": the first of these that the
                device has.
            synchronization: for "gpu+cpu": how they wait for each other: "polling", "events",
                "user_events", or "auto": polling where the device can.
            trial: for "gpu+cpu" in exact precision: whether the first inferences compare the file's
                plan with either processor alone, and the fastest runs all others. All give the same
                results. A plan that is given here is used without comparison.
            cores: which processors those threads stay on, the calling one for the time of a call:
                "any"; "big" or "little": a phone's strong or weakest ones; or a list of numbers.
            hint: "performance": threads spin for up to 50 ms after an inference, and Android is
                told how long inferences take, to raise clocks; "power": they sleep at once.
            in_place: whether the file is mapped, shared with the page cache, instead of read. It
                must then stay unchanged while the network is in use (replacing it by renaming is
                fine): results are otherwise undefined, and a file cut short ends the process.
            max_memory_bytes: largest file, largest sum of activations, scratch memory and packed
                weights that it may ask for, and largest sum of an image's inputs and outputs; 0:
                half of this machine's memory, at most 4 GiB.
            max_work: most operations of one image that the file may ask for (multiply-adds of
                values, xor-popcounts of 32-bit words, reads of 16 channels by pooling windows); 0:
                10^12 for each processor.

        Returns:
            The network. A ``PhoneBitWarning`` tells what does not work as well as it could, for
            instance a kernel that failed the self-test.

        Raises:
            ModelFormatError: if the file is not a sound ``.pbit`` file.
            OSError: if the file cannot be read.
            DeviceError: if this machine does not have the device, or it cannot run the network
                (with "auto" the CPU serves then).
            InputError: if an argument is out of range, or the plan does not fit the file.
        """
        path = Path(path)
        options = EngineOptions(
            threads,
            precision,
            plan,
            sharing,
            synchronization,
            trial,
            cores=cores,
            hint=hint,
            in_place=in_place,
            max_memory_bytes=max_memory_bytes,
            max_work=max_work,
        )
        return cls(open_engine(path, device, options), path)

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order pyopencl queue on which this network works, and through it its context.

        Raises:
            DeviceError: if the network runs on the CPU.
        """
        if self._queue is None:
            if not self._engine.opencl_queue:
                raise DeviceError(
                    "the network runs on the CPU, which has no OpenCL queue",
                    where=str(self._path),
                    hint="load it with device='gpu'",
                )
            import pyopencl

            queue: cl.CommandQueue = pyopencl.CommandQueue.from_int_ptr(self._engine.opencl_queue)
            self._queue = queue
        return self._queue

    def forward(
        self,
        x: Array | cl_array.Array | Mapping[str, Any],
        out: Array | cl_array.Array | Mapping[str, Any] | None = None,
    ) -> Array | cl_array.Array | dict[str, Any]:
        """Run the network on a batch.

        Arrays are NumPy's, or all ``pyopencl.array.Array`` of the context of ``queue``. Those stay
        on the device: the pass is enqueued behind what their own queues hold and the call returns;
        work that those queues get later waits for it. Nothing looks at their values.

        Args:
            x: (N, height, width, channels), N >= 1, of the dtype that ``inputs`` says (uint8 or
                float32); (N, C) will do where height and width are 1; on a device C-contiguous. A
                dict from input name to array if there are several inputs.
            out: an array for the result, or a dict from output name to array, with the shapes and
                dtypes of the results. The runtime writes into device arrays itself; NumPy's are
                copied into.

        Returns:
            float32 (N, height, width, channels); (N, C) where height and width are 1. A dict by
            output name if there are several outputs. A "bit" output is int8 of -1 and +1; on a
            device it stays packed: uint32 (N, height, width, ceil(channels / 32)), channel c is bit
            c % 32 of word c // 32, 1 stands for +1, spare bits are 0. It is ``out``, if given;
            otherwise device arrays are new ones on ``queue``.

        Raises:
            InputError: if an array's dtype, shape, batch, values or context are not acceptable, or
                NumPy's and device arrays are mixed.
            DeviceError: for device arrays if the network runs on the CPU; if the device fails.
            CancelledError: if another thread called ``cancel``.
        """
        if holds_device_arrays(x):
            infos = (self._inputs, self._outputs)
            results = forward_on_device(self._engine, self.queue, infos, x, out)
        else:
            arrays = self._engine.forward(check_inputs(x, self._inputs))
            results = named_results(arrays, self._outputs, out)
            self._warn_of_failures()
        return next(iter(results.values())) if len(results) == 1 else results

    def cancel(self) -> None:
        """End the passes that run now or wait for their turn, in whatever thread.

        Each raises ``CancelledError`` as soon as it can: the CPU stops within a layer, a GPU
        finishes the layers that it was given. Later passes are not concerned. Does not wait.
        """
        self._engine.cancel()

    def _warn_of_failures(self) -> None:
        """A GPU that failed in this pass cost no result, but will be missed."""
        if not self.plan_key:
            return
        notes = self._engine.warnings
        for note in notes[self._known_warnings :]:
            warnings.warn(note, PhoneBitWarning, stacklevel=3)
        self._known_warnings = len(notes)

    def activations(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Run the network and keep every intermediate tensor, for debugging.

        Args:
            x: as for ``forward``.

        Returns:
            Arrays (N, height, width, channels) by tensor name: float32, uint8, or int8 of -1, +1.

        Raises:
            InputError: as for ``forward``.
        """
        return dict(self._engine.activations(check_inputs(x, self._inputs)))

    def profile(self, x: Array | Mapping[str, Array], repeats: int = 10) -> list[LayerProfile]:
        """Measure each layer on a batch.

        Args:
            x: as for ``forward``.
            repeats: runs to take the median of, at least 1.

        Returns:
            One entry a layer, in execution order.

        Raises:
            InputError: as for ``forward``, or if ``repeats`` is below 1.
        """
        if repeats < 1:
            raise InputError("too few", where="repeats", expected="at least 1", got=repeats)
        arrays = check_inputs(x, self._inputs)
        return make_profiles(self._layers, self._engine.profile(arrays, repeats), len(arrays[0]))

    def run_layer(self, index: int, operands: list[Array]) -> dict[str, Array]:
        """Run one layer alone, on given operands; ``phonebit verify`` is built on this.

        Args:
            index: place of the layer in ``layers``.
            operands: arrays (N, height, width, channels) in the order of the layer's ``inputs``:
                float32, uint8, or int8 of -1 and +1; of values that the layers before can give
                (a layer that reads bits as floats may count on -1 and +1).

        Returns:
            Its outputs by tensor name.

        Raises:
            InputError: if ``index`` or an operand does not fit the layer.
        """
        self._check_layer(index)
        return dict(self._engine.run_op(index, [np.ascontiguousarray(x) for x in operands]))

    def candidates(self, index: int) -> list[str]:
        """Kernels, with their parameters, that could serve a layer on this OpenCL device.

        Args:
            index: place of the layer in ``layers``.

        Returns:
            Choices as a tuning table writes them, the one that serves now first; none on the CPU.

        Raises:
            InputError: if there is no such layer.
        """
        self._check_layer(index)
        return list(self._engine.candidates(index))

    def programs(self, index: int) -> list[tuple[str, str]]:
        """The OpenCL programs that compute a layer on this device.

        Args:
            index: place of the layer in ``layers``.

        Returns:
            Kernel and program text, as the driver compiles it, of each launch in order.

        Raises:
            InputError: if there is no such layer, or the network is on another kind of device.
        """
        self._check_layer(index)
        return self._engine.programs(index)

    def measure_choice(
        self, index: int, choice: str, batch: int = 1, repeats: int = 10
    ) -> tuple[float, bool]:
        """Measure one of a layer's ``candidates``; the network itself stays as it is.

        Args:
            index: place of the layer in ``layers``.
            choice: the candidate.
            batch: inputs at a time.
            repeats: runs to take the median of.

        Returns:
            Milliseconds on the device, and whether it gives what the serving kernel gives.

        Raises:
            InputError: if there is no such layer or candidate.
            DeviceError: if the device cannot build or run it.
        """
        self._check_layer(index)
        return self._engine.measure_choice(index, choice, batch, repeats)

    def tuning_line(self, index: int, choice: str) -> str:
        """The line of a tuning table that makes a choice serve layers of this shape.

        Args:
            index: place of the layer in ``layers``.
            choice: one of its ``candidates``.

        Returns:
            Op, shape, vendor, family, device, kernel, parameters.

        Raises:
            InputError: if there is no such layer or candidate.
        """
        self._check_layer(index)
        return self._engine.tuning_line(index, choice)
