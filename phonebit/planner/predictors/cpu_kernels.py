"""Which CPU kernel computes a part of a layer: the ``supports`` functions of ``cpu_backend``.

Kernels are named after what they serve, not as the backend names them: those of one instruction set
have the same rules, and a profile is for one instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from phonebit.errors import InputError
from phonebit.planner.plan import OutputPart
from phonebit.planner.predictors.kernel_rules import is_dense
from phonebit.planner.predictors.layer_shape import LayerShape

CHANNEL_BLOCK: Final = 64
"""Output channels of a unit of work, on every instruction set."""
PIXEL_TILE: Final = 4
"""Its pixels, of most kernels."""
_CHUNK: Final = 64
_TILE_ROWS: Final = 16
_CARRY_SAVE_CHANNELS: Final = 128


@dataclass(frozen=True)
class CpuFacts:
    """A CPU as far as it decides about kernels.

    Args:
        isa: A name of ``_runtime.isa_names()``, as "neon_dotprod".
        cores: That the process may use.
        has_tiles: Whether the matrix unit (AMX) serves binary convolutions.
    """

    isa: str
    cores: int
    has_tiles: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CpuFacts:
        """The inverse.

        Raises:
            InputError: Fields are missing or unknown.
        """
        try:
            return cls(**record)
        except TypeError as error:
            raise InputError("facts about a CPU", got=str(error)) from None


_Rule = Callable[[LayerShape, OutputPart, CpuFacts], bool]


def _has_one_pixel(layer: LayerShape, _part: OutputPart, _cpu: CpuFacts) -> bool:
    return is_dense(layer)


def _fills_tiles(layer: LayerShape, part: OutputPart, cpu: CpuFacts) -> bool:
    steps = -(-layer.in_c // _CHUNK) * layer.kernel_h * layer.kernel_w
    pixels = (part.row_end - part.row_begin) * layer.out_w
    return cpu.has_tiles and layer.in_c >= _CHUNK // 2 and pixels >= _TILE_ROWS and steps >= 2


def _saves_carries(layer: LayerShape, _part: OutputPart, _cpu: CpuFacts) -> bool:
    window = layer.kernel_h, layer.kernel_w, layer.stride_h, layer.stride_w
    is_plain = window == (3, 3, 1, 1) and layer.dilation_h == layer.dilation_w == 1
    return is_plain and layer.in_c % 32 == 0 and layer.in_c >= _CARRY_SAVE_CHANNELS


def _is_any(_layer: LayerShape, _part: OutputPart, _cpu: CpuFacts) -> bool:
    return True


_NEON: Final[tuple[tuple[str, _Rule], ...]] = (("dense", _has_one_pixel), ("window", _is_any))
_BINARY_KERNELS: Final[dict[str, tuple[tuple[str, _Rule], ...]]] = {
    "avx512": (
        ("dense", _has_one_pixel),
        ("tiles", _fills_tiles),
        ("carry_save", _saves_carries),
        ("popcount", _is_any),
    ),
    "avx2": (("dense", _has_one_pixel), ("pair_table", _is_any)),
    "neon_i8mm": _NEON,
    "neon_dotprod": _NEON,
    "neon": _NEON,
    "scalar": (("popcount", _is_any),),
}
"""Best first, for each instruction set."""

_TABLE_KERNELS: Final = ("pair_table", "window")
_STEP_CHANNELS: Final = 4
_RUN_STEPS: Final = 6
"""Bits that table kernels look up at once, and of what a row of a window has whole multiples."""

_PIXEL_TILES: Final = {"dense": 1, "tiles": 64, "carry_save": 7, "popcount": 28}


def cpu_kernel(layer: LayerShape, part: OutputPart, cpu: CpuFacts) -> str:
    """The kernel of a part, as "binary_conv2d carry_save", or the layer's family.

    Args:
        layer: What is computed.
        part: Which part of it.
        cpu: Where.

    Raises:
        InputError: The instruction set is unknown.
    """
    if layer.op != "binary_conv2d":
        return layer.family
    if layer.groups > 1:
        return "binary_conv2d grouped"
    if cpu.isa not in _BINARY_KERNELS:
        known = ", ".join(_BINARY_KERNELS)
        raise InputError("unknown instruction set", where="profile", expected=known, got=cpu.isa)
    rules = _BINARY_KERNELS[cpu.isa]
    return f"binary_conv2d {next(name for name, serves in rules if serves(layer, part, cpu))}"


def window_operations(layer: LayerShape, kernel: str) -> int:
    """Multiply-accumulates that a kernel makes for one output: with what fills its words, or steps.

    Args:
        layer: What is computed.
        kernel: By what, as ``cpu_kernel`` names it.
    """
    if kernel.rpartition(" ")[2] in _TABLE_KERNELS:
        steps = layer.kernel_w * -(-layer.in_c // _STEP_CHANNELS)
        filled = -(-steps // _RUN_STEPS) * _RUN_STEPS
        return layer.kernel_h * filled * _STEP_CHANNELS
    return layer.word_taps


def pixel_tile(kernel: str) -> int:
    """Output pixels that a kernel works on at a time.

    Args:
        kernel: As ``cpu_kernel`` names it.
    """
    return _PIXEL_TILES.get(kernel.rpartition(" ")[2], PIXEL_TILE)
