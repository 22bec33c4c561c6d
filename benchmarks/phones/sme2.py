#!/usr/bin/env python3
"""Executed instructions with SME2's outer products and with NEON, under qemu. Nothing is measured.

    cmake -S . -B build/sme2 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/clang-lld-aarch64.cmake
    cmake build/sme2 -DBUILD_SHARED_LIBS=OFF -DCMAKE_EXE_LINKER_FLAGS=-static
    cmake --build build/sme2 --target phonebit_run
    python -m benchmarks.phones.sme2 --qemu qemu-aarch64 --networks quicknet.pbit birealnet18.pbit

Needs qemu-aarch64 10.1 or newer: benchmarks/mobile_isa/setup.sh has it in root/usr/bin.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.command_line import parser_of
from benchmarks.layer_shapes import binary_layer, sign_layer, temporary_file
from benchmarks.phones.blocks import blocks_of_an_inference
from benchmarks.records import RESULTS, write_results
from phonebit.devices.environment import commit
from phonebit.format.reader import read_contents
from phonebit.format.records import DataType
from phonebit.planner.predict.layer_shape import TYPE_BITS, LayerShape

PROGRAM = Path("build/sme2/runtime/tools/phonebit_run")
VARIANTS: Final = (("neon_i8mm", 128), ("sme2", 128), ("sme2", 256), ("sme2", 512))
"""Instruction sets, and bits of a vector in streaming mode."""


LAYERS: Final = {
    "3x3, 64 to 64 channels, 56x56": binary_layer(56, 64, 64, 3),
    "3x3, stride 2, 64 to 128 channels, 56x56": binary_layer(56, 64, 128, 3, 2),
    "3x3, 128 to 128 channels, 28x28": binary_layer(28, 128, 128, 3),
    "3x3, 256 to 256 channels, 14x14": binary_layer(14, 256, 256, 3),
    "3x3, 512 to 512 channels, 7x7": binary_layer(7, 512, 512, 3),
    "dense, 9216 to 4096": binary_layer(1, 9216, 4096),
}
"""Binary layers whose thresholds make bits: those of ResNets and VGGs, and AlexNet's fc6."""


def main() -> None:
    """Writes benchmarks/results/sme2.json."""
    parser = parser_of(__doc__)
    parser.add_argument("--qemu", required=True, help="qemu-aarch64, 10.1 or newer")
    parser.add_argument("--networks", type=Path, nargs="+", required=True, help=".pbit files")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="phonebit_run for AArch64")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "sme2.json")
    arguments = parser.parse_args()

    def count(network: Path, isa: str, bits: int) -> int:
        cpu = f"max,sme-default-vector-length={bits // 8}"
        with tempfile.TemporaryDirectory() as folder:
            command = _command(arguments.program, network, isa, Path(folder))
            blocks = blocks_of_an_inference(command, cpu, arguments.qemu)
        return round(sum(len(block.code) * runs for block, runs in blocks.items()))

    def count_layer(layer: LayerShape, isa: str, bits: int) -> int:
        with temporary_file(layer) as file:
            return count(file, isa, bits)

    networks = [
        {"network": network.stem, "isa": isa, "vector_bits": bits}
        | {"instructions": count(network, isa, bits)}
        for network in arguments.networks
        for isa, bits in VARIANTS
    ]
    layers = []
    for name, layer in LAYERS.items():
        before = sign_layer(layer.in_h, layer.in_w, layer.in_c)
        others = count_layer(before, *VARIANTS[0])
        layers += [
            {"layer": name, "mac": layer.operations(layer.whole), "isa": isa, "vector_bits": bits}
            | {"instructions": count_layer(layer, isa, bits) - others}
            for isa, bits in VARIANTS
        ]
    version = subprocess.check_output([arguments.qemu, "-version"], text=True)
    emulator = version.split("(")[0].removeprefix("qemu-aarch64 version").strip()
    facts = {"measured": False, "qemu": emulator, "commit": commit()}
    write_results(arguments.output, {**facts, "networks": networks, "layers": layers})


def _command(program: Path, network: Path, isa: str, folder: Path) -> Callable[[int], list[str]]:
    """The command that runs a network on some images, all zeros: what is computed is the same.

    phonebit_bench also spins, to see whether the machine is busy, which is most of a log.
    """
    contents = read_contents(network)
    image = contents.tensors[contents.inputs[0]]
    size = TYPE_BITS[DataType(int(image["dtype"]))] // 8
    for side in ("height", "width", "channels"):
        size *= int(image[side])

    def command(passes: int) -> list[str]:
        images = folder / f"{passes}"
        images.write_bytes(bytes(passes * size))
        files = ["--input", str(images), "--output", str(folder / "output")]
        return [str(program), str(network), "--device", f"cpu:{isa}", "--threads", "1", *files]

    return command


if __name__ == "__main__":
    main()
