"""Opening a file with the compiled runtime: device, stored tuning, cache folder, warnings."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, get_args

from phonebit.compiled import load_runtime
from phonebit.devices.kernel_presets import Kernels, preset_lines
from phonebit.devices.runtime import usable_cores
from phonebit.devices.target import Target, find_target
from phonebit.devices.thread_count import default_threads
from phonebit.devices.tuning_store import cache_folder, stored_tuning, tuning_file
from phonebit.errors import DeviceError, InputError, PhoneBitWarning
from phonebit.keywords import check_keywords

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.devices.target import DeviceLike
    from phonebit.planner import ExecutionPlan

_log = logging.getLogger(__name__)

Precision = Literal["exact", "f16", "fast"]
Sharing = Literal["auto", "copy", "map", "svm"]
Synchronization = Literal["auto", "events", "user_events", "polling"]
Cores: TypeAlias = "Literal['any', 'big', 'little'] | Sequence[int]"
Hint = Literal["none", "performance", "power"]
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "precision": get_args(Precision),
    "sharing": get_args(Sharing),
    "synchronization": get_args(Synchronization),
    "cores": ("any", "big", "little"),
    "hint": get_args(Hint),
    "kernels": get_args(Kernels),
}
MAX_THREADS = 1024


class EngineOptions(TypedDict, total=False):
    """How a network runs: the keywords of ``Network.load``.

    Those that are left out have their defaults, which are named first.

    Attributes:
        threads: CPU threads of an inference; 0: one for each of the chosen ``cores``, with
            "any" one per usable core but no more than the CPU quota of the control group and
            OMP_NUM_THREADS allow (``phonebit devices`` tells the number and its reason).
        precision: "exact": float32, binary layers with the same bits everywhere; "f16": an
            OpenCL device keeps float tensors in half precision and multiplies halves in
            full-precision layers if the file stores their weights as F16 or I8 (the CPU stays
            exact); "fast": an OpenCL device as with "f16"; the CPU computes such layers in
            int8. Other layers stay exact, and a warning names them. With "gpu+cpu" each
            processor computes as it does alone.
        plan: for "gpu+cpu": who computes what; None: the plan that the file has for these two
            processors (``phonebit plan`` writes it), or else everything on the GPU.
        sharing: for "gpu+cpu": how one reaches what the other wrote: "svm" (fine-grained shared
            virtual memory), "map" (zero-copy of what one of them writes), "copy", or "auto":
            the first of these that the device has.
        synchronization: for "gpu+cpu": how they wait for each other: "polling", "events",
            "user_events", or "auto": polling where the device can, but events where it is a
            pool of CPU threads.
        trial: for "gpu+cpu": whether the first inferences compare the file's plan with either
            processor alone, and the fastest runs all others. In exact precision all give the same
            results, below it each those of its own types. The choice is kept in the cache folder.
            A plan that is given here is used without comparison.
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
        kernels: of an OpenCL device: "tuned", what the tuning table and ``phonebit tune``
            found; "paper", the forms of the PhoneBit paper (bnn_kernels/paper.table). Results
            are the same, but for the order of float sums with precision "f16" or "fast".
    """

    threads: int
    precision: Precision
    plan: ExecutionPlan | None
    sharing: Sharing
    synchronization: Synchronization
    trial: bool
    cores: Cores
    hint: Hint
    in_place: bool
    max_memory_bytes: int
    max_work: float
    kernels: Kernels


def check_options(options: EngineOptions) -> None:
    """Refuses what is out of range, or no option.

    Raises:
        InputError: one is out of range.
        TypeError: there is no option of a name.
    """
    check_keywords(options, EngineOptions)
    threads = options.get("threads", 0)
    if not 0 <= threads <= MAX_THREADS:
        raise InputError(
            "number of threads out of range",
            where="threads",
            expected=f"0 (what `phonebit devices` says) to {MAX_THREADS}",
            got=threads,
        )
    for name, limit in (
        ("max_memory_bytes", options.get("max_memory_bytes", 0)),
        ("max_work", options.get("max_work", 0.0)),
    ):
        if not limit >= 0:  # nor nan
            raise InputError(
                "limit out of range",
                where=name,
                expected="0 (from this machine) or more",
                got=limit,
            )
    given: Mapping[str, Any] = options
    for name, choices in CHOICES.items():
        value = given.get(name, choices[0])
        if name == "cores" and not isinstance(value, str) and len(value) > 0:
            continue  # the runtime knows which processors there are
        if value not in choices:
            raise InputError(
                f"unknown {name}",
                where=name,
                expected=" or ".join(map(repr, choices)),
                got=repr(value),
            )


def thread_count(options: EngineOptions) -> int:
    """Threads to ask the runtime for; 0: one for each of the chosen ``cores``."""
    threads = options.get("threads", 0)
    if threads or options.get("cores", "any") != "any":
        return threads
    return min(default_threads().threads, MAX_THREADS)


def open_engine(
    path: Path, device: DeviceLike, options: EngineOptions, stacklevel: int = 3
) -> _runtime.Network:
    """Load a file into the runtime; see ``Network.load``.

    Args:
        path: the file.
        device: where it shall run.
        options: how.
        stacklevel: whose line warnings name, counted from this function.

    Returns:
        The runtime's object.

    Raises:
        ModelFormatError: if the file is not sound.
        OSError: if it cannot be read.
        DeviceError: if the device is absent or cannot run the network.
        InputError: if an option is out of range, or the plan does not fit the file.
    """
    check_options(options)
    target = find_target(device)
    with path.open("rb"):  # the operating system's own error if it is absent or a directory
        pass
    notes: list[str] = []
    cores = usable_cores()
    if (threads := options.get("threads", 0)) > cores:
        notes.append(
            f"{threads} threads on {cores} usable cores: they wait for each other, which "
            f"can take a thousand times as long; use at most {cores}"
        )
    begin = time.perf_counter()
    try:
        engine = _open(path, target, options, notes)
    except DeviceError as error:
        if device != "auto" or not target.is_gpu:
            raise
        notes.append(f"the CPU runs it, since {target.device} cannot: {error}")
        engine = _open(path, Target("cpu"), options, notes)
    took_ms = 1e3 * (time.perf_counter() - begin)
    _log.info("loaded %s on %s, threads=%d, %.1f ms", path, engine.device, engine.threads, took_ms)
    for note in [*notes, *engine.warnings]:
        warnings.warn(note, PhoneBitWarning, stacklevel=stacklevel)
    return engine


def _open(path: Path, target: Target, options: EngineOptions, notes: list[str]) -> _runtime.Network:
    given: dict[str, Any] = {**options, "threads": thread_count(options)}
    kernels = given.pop("kernels", "tuned")
    if given.get("plan") is not None:
        given["plan"] = given["plan"].as_tuple()
    if not isinstance(given.get("cores", ""), str):
        given["cores"] = list(given["cores"])

    def construct(tuning: str) -> _runtime.Network:
        engine: _runtime.Network = load_runtime().Network(
            str(path),
            device=target.device,
            tuning=tuning,
            cache_directory=str(cache_folder() or ""),
            **given,
        )
        return engine

    if kernels != "tuned":
        if not target.is_gpu:
            raise InputError(
                "this choice of kernels is for GPUs",
                where=f"kernels {kernels!r}",
                got=f"device {target.device!r}",
                hint="use device 'gpu'; `phonebit devices` lists what there is",
            )
        return construct(preset_lines(kernels, target.key))
    tuning = stored_tuning(target.key) if target.is_gpu else ""
    if not tuning:
        return construct("")
    try:
        return construct(tuning)
    except InputError as error:  # a damaged entry, or one of another version of the kernels
        engine = construct("")
        notes.append(
            f"stored tuning is ignored: {error}; "
            f"run `phonebit tune` again, or delete {tuning_file(target.key)}"
        )
        return engine
