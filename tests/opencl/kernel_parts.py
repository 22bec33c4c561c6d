"""Parts of a layer's output: a launch on some pixels and channels writes those of the whole result.

Everything else keeps the pattern that it had.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_driver import Array, run_kernel, work_sizes

from phonebit.bnn_kernels.sources import kernel_paths, tunables

Defines = Mapping[str, int | str]

RANGES = 1 if os.environ.get("PHONEBIT_TEST_OPENCL") == "Oclgrind" else 4
"""Of pixels, at random; Oclgrind takes ten seconds for a layer's."""


@dataclass(frozen=True)
class Part:
    """Pixels over the batch. ``channels`` None: all, by the usual program."""

    first_pixel: int
    end_pixel: int
    channels: tuple[int, int] | None = None


def channel_grain(kernel: str, tune: Mapping[str, int]) -> int:
    """Parts of the channels begin at its multiples (``@channels``); 0: the kernel has no parts."""
    text = kernel_paths()[kernel].read_text(encoding="utf-8")
    line = re.search(r"^// @channels (.+)$", text, re.MULTILINE)
    if line is None:
        return 0
    scope = {tunable.name: tunable.default for tunable in tunables(kernel)} | dict(tune)
    return int(eval(line[1], {"max": max, "min": min}, scope))


def random_parts(kernel: str, tune: Mapping[str, int], pixels: int, channels: int) -> list[Part]:
    """Ranges of pixels of any length, with all channels and, where the kernel can, with some."""
    random = np.random.default_rng([pixels, channels])
    grain = channel_grain(kernel, tune)
    parts = [Part(pixels - 1, pixels)]
    for i in range(RANGES):
        first, end = sorted(random.choice(pixels + 1, 2, replace=False).tolist())
        parts.append(Part(first, end))
        if grain == 0:
            continue
        begin = grain * int(random.integers(0, -(-channels // grain)))
        last = range(begin + 8, channels, 8)[i % 3 :: 3] or [channels]
        parts.append(Part(first, end, (begin, int(random.choice(last)))))
        parts.append(Part(first, end, (begin, channels)))
    return parts


def check_parts(
    kernel: str,
    defines: Defines,
    pixels: int,
    arguments: Sequence[Any],
    whole: Sequence[Array],
    parts: Sequence[Part],
) -> None:
    """Runs the parts.

    Args:
        kernel: its name.
        defines: macros of the usual program.
        pixels: of the whole batch.
        arguments: those after the pixels'; the last ones are the outputs, filled with a pattern.
        whole: what the arrays among them hold after the whole launch.
        parts: what to run.
    """
    outputs = _output_count(defines)
    for part in parts:
        first, end = part.channels or (0, int(defines["OUT_C"]))
        macros, passed = _in_parts(defines, arguments, part)
        sizes = work_sizes(kernel, macros, part.end_pixel - part.first_pixel, end - first)
        numbers = [part.first_pixel, part.end_pixel]
        results = run_kernel(kernel, macros, *sizes, [*numbers, *passed])
        for i in range(-outputs, 0):
            expected = arguments[i].copy()
            _region(expected, defines, pixels, part)[:] = _region(whole[i], defines, pixels, part)
            got, wanted = results[i].view(np.uint8), expected.view(np.uint8)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{kernel}: {part}")


def _output_count(defines: Defines) -> int:
    if "EPILOGUE" in defines:
        return ("HAS_VALUES" in defines) + ("HAS_BITS" in defines)
    return 1


def _in_parts(
    defines: Defines, arguments: Sequence[Any], part: Part
) -> tuple[Defines, Sequence[Any]]:
    """The program and its arguments: the range of channels leads the sink's."""
    if part.channels is None:
        return defines, arguments
    sink = len(arguments) - str(defines["SINK_PARAMS"]).count("__global")
    has_bits = "uint* bits" in str(defines["SINK_PARAMS"])
    parameters, names = (", __global uchar* bit_bytes", ", bit_bytes") if has_bits else ("", "")
    macros = {
        **defines,
        "CHANNEL_PARTS": 1,
        "SINK_PARAMS": f", int first_channel, int end_channel{defines['SINK_PARAMS']}{parameters}",
        "SINK_ARGS": f", first_channel, end_channel{defines['SINK_ARGS']}{names}",
    }
    outputs = [*arguments[sink:], *(arguments[-1:] if has_bits else [])]
    return macros, [*arguments[:sink], *part.channels, *outputs]


def _region(array: Array, defines: Defines, pixels: int, part: Part) -> Array:
    """The part's bytes [pixels][bytes] of a tensor of packed bits (uint32) or of values."""
    is_bits = array.dtype == np.uint32
    channels = int(defines["OUT_C"])
    width = int(defines["OUT_WORDS"]) if is_bits else channels
    maps = array[: pixels * width].reshape(pixels, width).view(np.uint8)
    begin, end = part.channels or (0, channels)
    if is_bits:
        columns = slice(begin // 8, end // 8 if end < channels else 4 * width)
    else:
        columns = slice(begin * array.itemsize, end * array.itemsize)
    return maps[part.first_pixel : part.end_pixel, columns]
