"""A loaded network: the Python face of the C++ runtime."""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from phonebit.devices.loading import EngineOptions, open_engine
from phonebit.errors import DeviceError, PhoneBitWarning
from phonebit.network.benchmark import Benchmark, benchmark
from phonebit.network.device_arrays import forward_on_device, holds_device_arrays
from phonebit.network.host_outputs import in_form_of, named_results
from phonebit.network.input_checks import Array, ArrayLike, check_inputs, explained
from phonebit.network.layers import NetworkLayers
from phonebit.network.random_inputs import random_inputs
from phonebit.network.stream import Finish, Stream

if TYPE_CHECKING:
    import pyopencl as cl
    from pyopencl import array as cl_array

    from phonebit import _runtime
    from phonebit.devices.target import DeviceLike


class Network(NetworkLayers):
    """A ``.pbit`` file, loaded and ready to run.

    Weights are read from the file once, at load; an inference allocates only its results. One
    object may be used from several threads: its calls are serialised, and the interpreter lock is
    released while they compute. Threads that should run concurrently load a network each.

    Pickling and copying take the path and the options along: the copy loads the file again, so that
    worker processes can have a network each.

    Example::

        network = Network.load("model.pbit")
        scores = network(images)  # (N, classes)
    """

    def __init__(
        self, engine: _runtime.Network, path: Path, device: DeviceLike, options: EngineOptions
    ) -> None:
        """Wrap a runtime object; use ``Network.load`` instead."""
        super().__init__(engine, path)
        self._loaded_on = device
        self._options = options
        self._queue: cl.CommandQueue | None = None
        self._known_warnings = len(engine.warnings)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: DeviceLike = "auto",
        **options: Unpack[EngineOptions],
    ) -> Network:
        """Load a ``.pbit`` file.

        The first use of an OpenCL device compiles and tests kernels; both are kept in the cache
        folder. What ``phonebit tune`` found for the device is used.

        Args:
            path: the file; it may change or vanish afterwards, unless the option
                ``in_place`` is set.
            device: "auto": the first GPU of OpenCL, or else the CPU; "cpu": the best instruction
                set of this machine (or the one that the environment variable PHONEBIT_CPU names);
                "cpu:avx2" and the like: that one; "gpu", "gpu:1", "vulkan",
                "vulkan:1": that device of ``phonebit devices``; "gpu+cpu", "vulkan:1+cpu:avx2":
                that device and the CPU together, as a plan says (docs/coexecution.md); a
                ``pyopencl.Device``, a ``Context`` with one device, or an in-order ``CommandQueue``,
                on which the network then works.
            **options: see ``EngineOptions``.

        Returns:
            The network. A ``PhoneBitWarning`` tells what does not work as well as it could, for
            instance a kernel that failed the self-test.

        Raises:
            ModelFormatError: if the file is not a sound ``.pbit`` file.
            OSError: if the file cannot be read.
            DeviceError: if this machine does not have the device, or it cannot run the network
                (with "auto" the CPU runs it then).
            InputError: if an argument is out of range, or the plan does not fit the file.
        """
        return cls._load(Path(path), device, options)

    @classmethod
    def _load(cls, path: Path, device: DeviceLike, options: EngineOptions) -> Self:
        return cls(open_engine(path, device, options, stacklevel=4), path, device, options)

    def __reduce__(self) -> tuple[Callable[..., Network], tuple[object, ...]]:
        """See the class.

        Raises:
            DeviceError: if it was loaded on a pyopencl object, which no other process has.
            InputError: if it is closed.
        """
        if not isinstance(self._loaded_on, str):
            raise DeviceError(
                "cannot be pickled or copied",
                where=str(self._path),
                got=f"a network that was loaded on a {type(self._loaded_on).__name__} of pyopencl",
                hint="load it on a device by name: device='gpu:0'",
            )
        _ = self._engine
        return type(self)._load, (self._path.absolute(), self._loaded_on, self._options)

    def close(self) -> None:
        """Free the runtime's memory, as the end of a ``with`` block does.

        Passes that run in other threads go on to their end. What the file says stays readable.
        """
        self._queue = self._open_engine = None

    def __enter__(self) -> Self:
        """Closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order pyopencl queue on which this network works, and through it its context.

        Raises:
            DeviceError: if the network runs on the CPU, or on a GPU by Vulkan.
        """
        if self._queue is None:
            if not self._engine.opencl_queue:
                raise DeviceError(
                    f"the network runs on {self.device}, which has no OpenCL queue",
                    where=str(self._path),
                    hint="load it with device='gpu:0'",
                )
            import pyopencl

            queue: cl.CommandQueue = pyopencl.CommandQueue.from_int_ptr(self._engine.opencl_queue)
            self._queue = queue
        return self._queue

    @overload
    def forward(
        self, x: Mapping[str, ArrayLike], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]: ...
    @overload
    def forward(self, x: ArrayLike, out: Array | None = None) -> Array: ...
    @overload
    def forward(
        self, x: Mapping[str, cl_array.Array], out: Mapping[str, cl_array.Array] | None = None
    ) -> dict[str, cl_array.Array]: ...
    @overload
    def forward(self, x: cl_array.Array, out: cl_array.Array | None = None) -> cl_array.Array: ...
    def forward(self, x: Any, out: Any = None) -> Any:
        """Run the network on a batch.

        ``network(x)`` is short for it. An array gives an array, or a dict by output name if there
        are several outputs; a dict by input name always gives a dict.

        Arrays are NumPy's, or of PyTorch or any other library with DLPack, whose memory on the CPU
        is read without a copy if it is C-contiguous; or all ``pyopencl.array.Array`` of the context
        of ``queue``. Those stay on the device: it is enqueued after what their own queues
        hold and the call returns; work that those queues get later waits for it. Nothing looks at
        their values.

        Args:
            x: (N, *array_shape) as ``inputs`` says, N >= 1: images (N, height, width, channels),
                features (N, C), and others in the axes of the network that was converted; or always
                (N, height, width, channels) as ``shape`` says, which has the same elements in the
                same order. Of the dtype that ``inputs`` says (uint8 or float32); on a device
                C-contiguous. A dict from input name to array if there are several. NumPy's may
                also be uint8 levels of images in the size of a float32 input for which
                ``preprocessing`` has a rule: they are copied to the device as bytes, and their
                values computed there, with the bits of ``Preprocessing.values``.
            out: an array for the result, or a dict from output name to array, with the shapes and
                dtypes of the results. The runtime writes into device arrays itself; NumPy's are
                copied into.

        Returns:
            float32 (N, *array_shape) as ``outputs`` says; NumPy's,
            unless ``x`` is on a device. A "bit" output is int8 of -1 and +1; on a device it stays
            packed: uint32, the last axis ceil(channels / 32) words; channel c is bit
            c % 32 of word c // 32, 1 stands for +1, spare bits are 0. It is ``out``, if given;
            otherwise device arrays are new ones on ``queue``.

        Raises:
            InputError: if an array's dtype, shape, batch, values or context are not acceptable, or
                NumPy's and device arrays are mixed.
            DeviceError: for device arrays if the network runs on the CPU; if the device fails.
            CancelledError: if another thread called ``cancel``.
        """
        # Stays until the end of the inference if another thread closes the network.
        engine = self._engine
        if holds_device_arrays(x):
            infos = (self._inputs, self._outputs)
            results = forward_on_device(engine, self.queue, infos, x, out)
        else:
            inputs = check_inputs(x, self._inputs, self._preprocessing)
            with explained(inputs, self._inputs):
                arrays = engine.forward(inputs)
            results = named_results(arrays, self._outputs, out)
            self._warn_of_failures(engine)
        return in_form_of(x, results)

    __call__ = forward

    def stream(self, batches: Iterable[Any] | AsyncIterable[Any]) -> Stream:
        """Run the network on batch after batch, for high throughput on a GPU.

        The device computes a batch while the next one is uploaded and the last result is copied
        back. ::

            for scores in network.stream(batches):
                ...
            async for scores in network.stream(batches):
                ...

        Args:
            batches: NumPy arrays or dicts as for ``forward``, of any batch sizes; a batch may
                change when the next one is asked for. For ``async for`` also an async source.

        Returns:
            What ``forward`` returns for each batch, in order. Errors are raised as in ``forward``
            and end the stream.
        """
        return Stream(self._begin, batches)

    def _begin(self, x: Any) -> Finish:
        """Begin an inference of ``stream``."""
        engine = self._engine
        arrays = check_inputs(x, self._inputs, self._preprocessing)
        with explained(arrays, self._inputs):
            begun = engine.begin(arrays)

        def finish() -> Any:
            results = named_results(begun.finish(), self._outputs, None)
            self._warn_of_failures(engine)
            return in_form_of(x, results)

        return finish

    def bench(
        self,
        x: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        runs: int = 100,
        warmup: int = 10,
        batch: int = 1,
        progress: Callable[[], None] = lambda: None,
    ) -> Benchmark:
        """Measure the latency of ``forward``, as ``phonebit bench`` does.

        Args:
            x: as for ``forward``; None: random inputs.
            runs: measured passes, at least 1.
            warmup: passes before them; as many more while plans are compared.
            batch: inputs per inference, if there is no ``x``.
            progress: called after each tenth of the runs.

        Returns:
            Every latency, and how steady the machine was.

        Raises:
            InputError: as for ``forward``, or if a number is too small.
        """
        inputs = random_inputs(self._inputs, batch) if x is None else x
        return benchmark(self, inputs, runs, warmup, progress)

    def cancel(self) -> None:
        """End the inferences that run now or wait for their turn, in whatever thread.

        Each raises ``CancelledError`` as soon as it can: the CPU stops within a layer, a GPU
        finishes the layers that it was given. Later inferences are not concerned. Does not wait.
        """
        self._engine.cancel()

    def _warn_of_failures(self, engine: _runtime.Network) -> None:
        """Warns about a GPU that failed; the CPU computed the result."""
        if not engine.plan_key:
            return
        notes = engine.warnings
        for note in notes[self._known_warnings :]:
            warnings.warn(note, PhoneBitWarning, stacklevel=3)
        self._known_warnings = len(notes)
