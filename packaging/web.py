"""Builds the npm package "phonebit" by Emscripten, of which Debian has all that it takes.

apt-get install emscripten node-acorn cmake ninja-build
python packaging/web.py -o DIR

DIR gets the files of web/; DIR/single and DIR/threads each get phonebit.js and phonebit.wasm.
Threads need a page that is cross-origin isolated.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "web"
THREADS = {"single": "OFF", "threads": "ON"}
PACKAGE = ("package.json", "phonebit.d.ts", "phonebit.mjs", "tasks.mjs", "worker.js")


def emscripten() -> Path:
    """Where Emscripten is."""
    program = shutil.which("em-config")
    if program is None:
        sys.exit("web.py needs Emscripten (Debian: apt-get install emscripten node-acorn)")
    told = subprocess.run([program, "EMSCRIPTEN_ROOT"], check=True, capture_output=True, text=True)
    return Path(told.stdout.strip())


def build(variant: str) -> list[Path]:
    """Builds a variant and returns its files."""
    folder = BUILD / variant
    options = {
        "CMAKE_TOOLCHAIN_FILE": emscripten() / "cmake/Modules/Platform/Emscripten.cmake",
        "PHONEBIT_WEB_THREADS": THREADS[variant],
        "PHONEBIT_TESTS": "OFF",
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    # Where Debian's packages for Node.js are, which others' Node.js does not look into.
    modules = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), "/usr/share/nodejs"]))
    environment = {**os.environ, "NODE_PATH": modules}
    for command in (
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *definitions],
        ["cmake", "--build", folder, "--target", "phonebit_web"],
    ):
        subprocess.run(command, check=True, env=environment)
    return [path for path in sorted((folder / "web").iterdir()) if path.suffix in (".js", ".wasm")]


def main() -> None:
    """Makes the package and prints the sizes of both modules."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name in PACKAGE:
        shutil.copy(ROOT / "web" / name, output)
    shutil.copy(ROOT / "LICENSE", output)
    for variant in THREADS:
        folder = output / variant
        folder.mkdir(parents=True, exist_ok=True)
        files = build(variant)
        for file in files:
            shutil.copy(file, folder)
        size = sum(file.stat().st_size for file in files)
        packed = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)
        print(f"{folder}: {size // 1000} kB, {packed // 1000} kB by gzip")


if __name__ == "__main__":
    main()
