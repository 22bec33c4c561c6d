"""Loads and runs damaged files: ``python fuzz_worker.py SEED COUNT FOLDER``.

Each case changes some fields of an intact file and renews the checksum, so that validation has to
find the damage. The file at hand is ``FOLDER/SEED.pbit``: after a crash it is the one that did it.
Prints how many cases were refused and how many ran. ``test_bad_files.py`` starts it.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np

from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_runtime
from phonebit.errors import DeviceError, ModelFormatError
from phonebit.format.records import (
    CONSTANT,
    HEADER,
    OP,
    PLAN,
    PLAN_PART,
    PREPROCESSING,
    SECTION,
    STEP,
    TENSOR,
    SectionKind,
)
from phonebit.format.writer import file_bytes, seal
from support.golden import described_classifier, golden_graphs, planned_classifier
from support.stress_graphs import long_lives, reshape_aliases

_runtime = gpu_runtime()

Random = np.random.Generator
TABLES = {
    SectionKind.TENSORS: TENSOR,
    SectionKind.CONSTANTS: CONSTANT,
    SectionKind.STEPS: STEP,
    SectionKind.OPS: OP,
    SectionKind.OPERANDS: np.dtype("<u4"),
    SectionKind.INPUTS: np.dtype("<u4"),
    SectionKind.OUTPUTS: np.dtype("<u4"),
    SectionKind.PREPROCESSING: PREPROCESSING,
    SectionKind.LABELS: np.dtype("<u4"),
    SectionKind.EXECUTION_PLANS: PLAN,
    SectionKind.PLAN_PARTS: PLAN_PART,
}
SMALL = (0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 255)
LARGE = (1 << 14, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
EXTREMES = SMALL + LARGE
MEMORY_LIMIT = 6 << 30
SECTION_COUNT = 12
"""Where the header has the number of sections."""


def mutate(file: bytes, random: Random) -> bytes:
    """One damaged file: fields, header, section table, raw bytes or length."""
    buffer = bytearray(file)
    kind = random.integers(0, 10)
    if kind < 7:
        for _ in range(random.integers(1, 4)):
            change_field(buffer, random)
    elif kind == 7:
        change_word(buffer, random, 0, HEADER.itemsize)
    elif kind == 8:
        change_word(buffer, random, HEADER.itemsize, HEADER.itemsize + 10 * SECTION.itemsize)
    else:
        del buffer[random.integers(0, len(buffer)) :]
        if len(buffer) >= HEADER.itemsize:
            buffer[16:24] = len(buffer).to_bytes(8, "little")
    return seal(buffer) if len(buffer) >= HEADER.itemsize else bytes(buffer)


def change_field(buffer: bytearray, random: Random) -> None:
    """Gives a 32-bit field of a record an extreme, a neighbouring, or another record's value."""
    count = read_word(buffer, SECTION_COUNT)
    table = np.frombuffer(bytes(buffer), SECTION, count, HEADER.itemsize)
    section = table[random.integers(0, len(table))]
    begin, size = int(section["offset"]), int(section["size_bytes"])
    if section["kind"] not in TABLES or size == 0:
        return change_word(buffer, random, begin, begin + size)
    stride = TABLES[SectionKind(section["kind"])].itemsize
    field = 4 * int(random.integers(0, stride // 4))
    at, other = (begin + int(random.integers(0, size // stride)) * stride + field for _ in range(2))
    value = read_word(buffer, at)
    extreme = EXTREMES[random.integers(0, len(EXTREMES))]
    choices = (extreme, value + 1, value - 1, value * 2, read_word(buffer, other))
    write_word(buffer, at, choices[random.integers(0, len(choices))])


def change_word(buffer: bytearray, random: Random, begin: int, end: int) -> None:
    """Gives a 32-bit word between two offsets an extreme value."""
    if end - begin >= 4:
        at = begin + 4 * int(random.integers(0, (end - begin) // 4))
        write_word(buffer, at, EXTREMES[random.integers(0, len(EXTREMES))])


def read_word(buffer: bytearray, at: int) -> int:
    return int.from_bytes(buffer[at : at + 4], "little")


def write_word(buffer: bytearray, at: int, value: int) -> None:
    buffer[at : at + 4] = (value % (1 << 32)).to_bytes(4, "little")


def survives(path: Path, random: Random) -> bool:
    """Whether the file loads (and then runs); ModelFormatError is the only other good outcome."""
    try:
        network = _runtime.Network(str(path), 1)
    except ModelFormatError:
        return False
    except DeviceError as error:
        if "not enough memory" in str(error):
            return False
        raise
    types = {"u8": np.uint8, "f32": np.float32}
    shapes = [(1, *info.shape) for info in network.inputs]
    inputs = [
        random.integers(0, 3, shape).astype(types[info.dtype])
        for shape, info in zip(shapes, network.inputs, strict=True)
    ]
    network.forward(inputs)
    return True


def main(seed: int, count: int, folder: Path) -> None:
    # A file may ask for as much memory as the loader allows; the machine may have less.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    random = np.random.default_rng(seed)
    graphs = [*golden_graphs().values(), reshape_aliases(), long_lives(), described_classifier()]
    files = [*(to_bytes(graph) for graph in graphs), file_bytes(planned_classifier())]
    path = folder / f"{seed}.pbit"
    accepted = 0
    for _ in range(count):
        path.write_bytes(mutate(files[random.integers(0, len(files))], random))
        accepted += survives(path, random)
    print(f"{accepted} ran, {count - accepted} were refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
