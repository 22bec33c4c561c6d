"""What modules there are, and the text of one: a kernel whose layer is left open."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bnn_kernels import sources

# What a layer decides, as specialisation constants; their numbers are places in this list.
CONSTANTS = """
    IN_H IN_W IN_C IN_WORDS OUT_H OUT_W OUT_C OUT_WORDS KERNEL_H KERNEL_W STRIDE_H STRIDE_W
    DILATION_H DILATION_W PAD_TOP PAD_LEFT PADDED PAD_BITS GROUPS ROW_CLASSES COLUMN_CLASSES
    INPUT_MUL INPUT_ADD CHANNEL_OFFSET PAD_FLOAT POOL_MAX SOFTMAX_LOG AT_CORNERS TRANSPOSED PLANES
    HAS_FLIP HAS_VALUES HAS_BITS HAS_FLOAT_THRESHOLD FLOAT_THRESHOLD_AT STEP STEP_A STEP_B STEP_C
""".split()  # noqa: SIM905
FLOATS = {"PAD_FLOAT"}
TENSORS = 4
_FUNCTIONS = re.compile(r"^FUNCTION\((\w+)\)", re.MULTILINE)
# mul_hi of these and a group's number stands for a constant: compilers do not look into it.
FIRST_MARK = 0xFFFE0000


@dataclass(frozen=True)
class Module:
    """A kernel with the defines that are written out in it."""

    kernel: str
    fixed: tuple[tuple[str, int], ...]

    def key(self) -> str:
        """As the runtime reads it: ``bgemv TILE_FILTERS=1 ... THRESHOLD=1``."""
        return " ".join([self.kernel, *(f"{name}={value}" for name, value in self.fixed)])

    def sink_buffers(self) -> int:
        """Arguments of its sink, the last ones."""
        names = {name for name, _ in self.fixed}
        return 1 if "THRESHOLD" in names else TENSORS + 3 if "EPILOGUE" in names else 0


def step_functions() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Steps of an epilogue: name to text and the buffers that are its ``constants``."""
    text = (sources.FOLDER / "common/functions.clh").read_text(encoding="utf-8")
    names = [*_FUNCTIONS.findall(text), "nearest_integer"]
    tensors = tuple(f"tensor{i}" for i in range(TENSORS))
    return {
        "STEP_SCALE_BIAS": ("STEP_SCALE_BIAS(@, a, b)", ("constants",)),
        "STEP_ADD": ("STEP_ADD(@, constants, 0, b)", tensors),
        "STEP_MULTIPLY": ("STEP_MULTIPLY(@, constants, 0, b)", tensors),
        "STEP_CLAMP": ("STEP_CLAMP(@, as_float(a), as_float(b))", ()),
        "STEP_PRELU": ("STEP_PRELU(@, a, b)", ("constants",)),
        "STEP_TWO_SLOPES": ("STEP_TWO_SLOPES(@, a, b, c)", ("constants",)),
        "STEP_COUNT": ("STEP_COUNT(@, a, b)", ("constants",)),
        **{f"STEP_FUNCTION {name}": (f"STEP_FUNCTION(@, {name})", ()) for name in names},
    }


def step_names() -> list[str]:
    """Calls in a list of steps, in their order, as the runtime names them."""
    found = []
    for name, (_, buffers) in step_functions().items():
        found += [f"{name} {buffer}" for buffer in buffers] if len(buffers) > 1 else [name]
    return found


def text_of(module: Module) -> str:
    """The text that is compiled."""
    defines = dict(module.fixed)
    lines = [
        "#define MODULE 1",
        "#define PLACES_ARE_INDICES",
        "#define SEPARATE __attribute__((noinline))",
    ]
    for number, name in enumerate(CONSTANTS):
        value = f"(int)mul_hi((uint)get_group_id(2), {FIRST_MARK + number}u)"
        lines.append(f"#define {name} {f'as_float({value})' if name in FLOATS else f'({value})'}")
    lines += [f"#define {name} 0" for name in ("INPUT_HALF", "VALUES_HALF", "FACTOR_HALF")]
    tensors = [f"tensor{i}" for i in range(TENSORS)]
    if "THRESHOLD" in defines:
        lines += [
            "#undef HAS_BITS",
            "#define SINK_PARAMS , __global uint* bits",
            "#define SINK_ARGS , bits",
        ]
    else:
        names = ["constants", *tensors]
        types = ", ".join(f"__global const float* {name}" for name in names)
        lines += [
            f"#define SINK_PARAMS , {types}, __global float* values, __global uint* bits",
            f"#define SINK_ARGS , {', '.join(names)}, values, bits",
            "#define APPLY_STEPS(W) value = apply_steps_##W(value, pixel, channel, "
            f"{', '.join(names)});",
        ]
    text = sources.assemble(module.kernel, defines)
    head, kernel = text.split("// @kernel", 1)
    if "EPILOGUE" in defines:
        kernel = kernel.replace(
            "// Steps, value output and sign bit", _steps_text() + "// Steps", 1
        )
    if "reqd_work_group_size" not in kernel:
        kernel = kernel.replace(
            "__kernel void", "__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void"
        )
    return "\n".join(lines) + "\n" + head + "// @kernel" + kernel


def _steps_text() -> str:
    text = (Path(__file__).parent / "steps.clh").read_text(encoding="utf-8")
    mark = FIRST_MARK + len(CONSTANTS)
    functions = step_functions().values()
    for width in (1, 4):
        cases = []
        for number, (pattern, buffers) in enumerate(functions):
            kind = "BUFFER" if buffers else "VALUE"
            body = pattern.replace("@", str(width))
            text += f"{kind}_STEP({width}, step{number}, {mark + number}u, {body})\n"
            cases += [
                f"{kind}_CALL({width}, {{}}, step{number}{', ' + buffer if buffer else ''})"
                for buffer in buffers or ("",)
            ]
        switch = "".join(f"    {case.format(number)}\n" for number, case in enumerate(cases))
        # A function that is called once, clspv inlines.
        text += (
            f"STEPS_AS_LIST({width}, {mark + len(functions)}u)\n"
            + f"  switch (STEP) {{\n{switch}  }}\n" * 2
        )
        text += "  return value;\n}\n"
    return text


BINARY = ("THRESHOLD", "EPILOGUE")


def modules() -> Iterator[Module]:
    """All of them."""
    for kernel, sinks, choices in KERNELS:
        for choice in choices:
            values = {t.name: t.default for t in sources.tunables(kernel)} | choice
            for sink in sinks:
                yield Module(kernel, (*values.items(), *((name, 1) for name in sink.split())))


def in_words(*choices: dict[str, int]) -> list[dict[str, int]]:
    """Choices with each number of words that may be loaded at once."""
    return [{**choice, "VECTOR_WORDS": words} for choice in choices for words in (1, 2, 4)]


KERNELS: list[tuple[str, tuple[str, ...], list[dict[str, int]]]] = [
    ("bconv2d_tiled", BINARY, in_words({}, {"GROUP_SIZE": 32})),
    (
        "bgemv",
        BINARY,
        in_words({}, {"TILE_FILTERS": 4, "GROUP_SIZE": 64}, {"TILE_FILTERS": 2, "GROUP_SIZE": 128}),
    ),
    ("bconv2d_grouped", BINARY, [{}]),
    ("bdepthwise2d", BINARY, [{}]),
    ("max_pool_bits", ("THRESHOLD",), [{}]),
    ("bit_planes", ("",), [{}]),
    ("concat_bits", ("",), [{}]),
    ("conv2d_u8_direct", BINARY, [{}]),
    ("split_planes", ("",), [{}]),
    ("conv2d_u8_planes", BINARY, [{}]),
    ("conv2d_f32", ("EPILOGUE",), [{}]),
    ("conv2d_f32_grouped", ("EPILOGUE",), [{}]),
    ("depthwise_f32", ("EPILOGUE",), [{}]),
    ("pool", ("EPILOGUE",), [{}]),
    ("elementwise", ("EPILOGUE",), [{"INPUT_KIND": k} for k in (0, 1, 2)]),
    ("concat", ("",), [{}]),
    ("pad", ("",), [{}]),
    ("matmul", ("",), [{}]),
    ("matmul_bits", ("",), [{}]),
    ("select_channels", ("",), [{}]),
    ("resize_bicubic", ("",), [{}]),
    ("resize_bilinear", ("",), [{}]),
    ("softmax", ("",), [{}, {"WIDE": 1, "GROUP_SIZE": 128}]),
]
