"""Types of the compiled module; runtime/python/ defines it."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from numpy.typing import NDArray

# (device, method, predicted_ms, [(stage, processor, layer, rows..., channels...)])
PlanTuple = tuple[str, str, float, list[tuple[int, int, int, int, int, int, int]]]
PartTuple = tuple[int, int, int, int]  # row_begin, row_end, channel_begin, channel_end

class TensorInfo:
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> Literal["bit", "u8", "f32"]: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...

class LayerInfo:
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def macs(self) -> int: ...
    @property
    def binary(self) -> bool: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def outputs(self) -> list[str]: ...

class GpuDevice:
    @property
    def api(self) -> str: ...  # "opencl", "vulkan"
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def driver_version(self) -> str: ...
    @property
    def is_gpu(self) -> bool: ...
    @property
    def compute_units(self) -> int: ...
    @property
    def clock_mhz(self) -> int: ...
    @property
    def global_bytes(self) -> int: ...
    @property
    def local_bytes(self) -> int: ...
    @property
    def capabilities(self) -> dict[str, bool]: ...  # images, half, fma, command_buffer, ...
    @property
    def kernels(self) -> dict[str, str]: ...  # op and shape class -> kernel and parameters
    @property
    def id(self) -> int: ...  # cl_device_id

class GpuHandles:
    def __init__(self, context: int, device: int, queue: int = 0) -> None: ...

class Network:
    def __init__(
        self,
        path: str | os.PathLike[str],
        threads: int = 0,
        device: str | GpuHandles = "cpu",  # "cpu:avx2", "gpu:1", "auto", "gpu+cpu", ...
        **options: Any,  # the fields of types/options.h; enumerations by name, a plan as PlanTuple
    ) -> None: ...
    @property
    def plan_key(self) -> str: ...  # what plans for both processors are kept under; "" on one
    @property
    def plan(self) -> PlanTuple: ...
    @property
    def coexec(self) -> dict[str, Any]: ...  # sharing, synchronization, is_on_trial, plan_ms, ...
    def measure_layer(
        self, index: int, cpu_part: PartTuple | None, gpu_part: PartTuple | None, repeats: int = 10
    ) -> dict[str, float]: ...  # total_us, cpu_us, gpu_us
    def measure_pass(self, repeats: int) -> dict[str, Any]: ...  # likewise; lists by layer
    def dispatch(
        self, index: int, gpu_part: PartTuple
    ) -> list[dict[str, Any]]: ...  # kernel, choice, global, local
    @property
    def device(self) -> str: ...  # "cpu:avx512", "gpu:0 NVIDIA H200"
    @property
    def warnings(self) -> list[str]: ...
    @property
    def startup(self) -> dict[str, float]: ...  # programs_built, programs_loaded, build_ms, ...
    @property
    def opencl_context(self) -> int: ...  # cl_context, 0 on the CPU
    @property
    def opencl_queue(self) -> int: ...
    def forward_on_device(
        self,
        inputs: Sequence[tuple[int, int]],  # (cl_mem, offset in bytes)
        outputs: Sequence[tuple[int, int]],
        batch: int,
    ) -> None: ...  # enqueues on the queue and returns
    def candidates(self, index: int) -> list[str]: ...
    def programs(self, index: int) -> list[tuple[str, str]]: ...  # kernel, text for the driver
    def measure_choice(
        self, index: int, choice: str, batch: int = 1, repeats: int = 10
    ) -> tuple[float, bool]: ...  # milliseconds by events; equal to what runs now
    def tuning_line(self, index: int, choice: str) -> str: ...
    @property
    def inputs(self) -> list[TensorInfo]: ...
    @property
    def outputs(self) -> list[TensorInfo]: ...
    @property
    def layers(self) -> list[LayerInfo]: ...
    @property
    def preprocessing(self) -> list[dict[str, Any]]: ...  # records, fields as format/records.py
    @property
    def detection(self) -> list[dict[str, Any]]: ...  # likewise
    @property
    def labels(self) -> list[str]: ...
    @property
    def memory(self) -> dict[str, int]: ...
    @property
    def metadata(self) -> str: ...
    @property
    def isa(self) -> str: ...
    @property
    def threads(self) -> int: ...
    def forward(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]: ...
    def profile(self, inputs: Sequence[NDArray[Any]], repeats: int = 10) -> list[float]: ...
    def begin(self, inputs: Sequence[NDArray[Any]]) -> Pass: ...  # uint8 will do as in forward
    def cancel(self) -> None: ...
    def activations(self, inputs: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]: ...
    def run_op(self, index: int, operands: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]: ...

class Pass:
    def finish(self) -> list[NDArray[Any]]: ...

class EnergySource:
    @property
    def name(self) -> str: ...  # "rapl", "ina", "odpm", "battery"
    @property
    def description(self) -> str: ...
    @property
    def kind(self) -> Literal["counter", "power"]: ...
    @property
    def unit_mj(self) -> float: ...
    @property
    def period_s(self) -> float: ...
    @property
    def rails(self) -> list[tuple[str, bool]]: ...  # name, whether it is a part of the sum
    def read(self) -> tuple[float, ...]: ...  # mJ since it was found, or mW

class EnergySpan:
    @property
    def window_s(self) -> float: ...
    @property
    def rails_mj(self) -> tuple[float, ...]: ...
    @property
    def energy_mj(self) -> float: ...
    @property
    def step_mj(self) -> float: ...  # largest energy between two readings that differ
    @property
    def changes(self) -> int: ...
    @property
    def has_stopped(self) -> bool: ...  # nothing new for too long
    @property
    def mean_mw(self) -> float: ...
    @property
    def uncertainty(self) -> float: ...  # one step as a share of the energy
    @property
    def update_s(self) -> float: ...  # mean time between changes

class EnergyTrace:
    def __init__(self, counted: Sequence[bool], is_counter: bool, unit_mj: float = 0.0) -> None: ...
    def add(self, time_s: float, reading: Sequence[float]) -> None: ...
    def span(self) -> EnergySpan: ...
    def __len__(self) -> int: ...

class EnergyMeter:  # reads a source in a thread, inside a with block
    def __init__(self, source: Any, answer_s: float) -> None: ...
    def __enter__(self) -> EnergyMeter: ...
    def __exit__(self, *args: object) -> None: ...
    def start(self) -> None: ...
    def peek(self) -> EnergySpan: ...

def measure_energy_window(
    *,
    source: str,
    start: Callable[[], None],
    peek: Callable[[], EnergySpan],
    seconds: float,
    longest_s: float,
    max_uncertainty: float,
    work: Callable[[], object],
    clock: Callable[[], float],
) -> tuple[EnergySpan, int]: ...  # and how often the work was done
def discover_energy(
    root: str = "/",
) -> list[tuple[str, list[EnergySource], str]]: ...  # kind, sources, why there are none

class NoiseProbe:
    def __init__(
        self,
        *,
        usual_share: float,
        tolerance: float,
        max_wait_s: float,
        waits_per_measurement: float,
        max_turns: int,
        clock: Callable[[], float],
    ) -> None: ...
    def measure_in_turns(
        self,
        sides: Sequence[bool],  # of the CPU and the GPU
        turn: Callable[[], tuple[float, float]],  # the probe's microseconds on each
        turns: int,
        seconds: float,
    ) -> None: ...
    def measure_quietly(
        self,
        sides: Sequence[bool],
        probe: Callable[[], tuple[float, float]],
        measure: Callable[[], None],
    ) -> None: ...
    @property
    def usual_us(self) -> tuple[float, float]: ...

def fixed_loop_ms(iterations: int) -> float: ...
def time_runs(
    runs: int, run: Callable[[], object], tenth_done: Callable[[], object]
) -> tuple[list[float], list[float]]: ...  # milliseconds of runs, and of a fixed loop between them

class FloatingPointScope:  # IEEE 754 default rounding inside a with block
    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

def isas() -> list[tuple[str, str, bool]]: ...
def isa_names() -> list[str]: ...

# Kernel selection. Layers are phonebit.planner's LayerShape; rows, pixels, channels: of a part.
CHANNEL_BLOCK: int

def cpu_kernel(
    isa: str, threads: int, is_64_bit: bool, layer: Any, rows: int, channels: int
) -> tuple[str, int, int]: ...
def operators() -> list[tuple[int, str, str, str]]: ...
def gpu_kernel_families() -> list[tuple[str, list[str]]]: ...
def built_in_tuning_table() -> str: ...

class GpuKernels:
    def __init__(
        self,
        name: str,
        vendor: str,
        family: str,
        local_bytes: int,
        has_images: bool,
        tuning: str,
    ) -> None: ...
    def tuning_lines(self) -> list[str]: ...
    def candidates(self, layer: Any, is_exact: bool = True) -> list[tuple[str, int]]: ...
    def launches(
        self, layer: Any, choice: str, pixels: int, channels: int
    ) -> list[tuple[str, list[int], list[int]]]: ...

def version() -> str: ...
def check_file(content: bytes) -> None: ...  # ModelFormatError unless it is a sound .pbit file
def use_opencl_library(path: str) -> None: ...
def prepare_image(  # fields of images/image.h; a rule of Network.preprocessing
    image: dict[str, Any], rule: dict[str, Any], dtype: str, shape: tuple[int, int, int]
) -> tuple[NDArray[Any], tuple[int, int, int, int]]: ...  # where it lies: width, height, left, top
def gpu_apis() -> list[str]: ...  # of this build
def gpu_devices(api: str) -> list[GpuDevice]: ...  # "opencl", "vulkan"
def gpu_error(api: str) -> str: ...  # why it has no device; empty where it has
def gpu_self_test(
    device: str | GpuHandles, cache_directory: str = "", again: bool = False
) -> list[tuple[str, str, bool, str]]: ...  # op, choice, passed, detail
