"""Libraries that stand between the runtime and the OpenCL that it uses.

``mapping_opencl.cpp`` keeps to what the specification promises of memory that the host and a device
share, and reports what is undefined. All tests run through it, but on a platform that is named
(PHONEBIT_TEST_OPENCL), whose own mappings are to be tested; PHONEBIT_TEST_MAPPING=0 or 1 decides
otherwise. The runtime of other processes that tests start uses it, too.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from phonebit.devices.gpus import LIBRARY_VARIABLE, pyopencl_library

HERE: Final = Path(__file__).parent
SOURCE: Final = HERE / "mapping_opencl.cpp"
HEADERS: Final = HERE.parents[1] / "runtime" / "opencl" / "include"
MAPPING: Final = "PHONEBIT_TEST_MAPPING"
"""Environment variable: whether mappings have memory of their own, "0" or "1"."""
DECLARATIONS: Final = Path("pocl_binary_distribution/.libs/share/pocl/include/opencl-c.h")
"""The built-in functions of OpenCL C in PoCL's wheel, below ``site-packages``."""
KERNELS: Final = HERE.parents[1] / "bnn_kernels"
_DECLARATION: Final = re.compile(r"^[a-z].*?\b(\w+) ?\([^()]*\);\n", re.MULTILINE)
_OF_WORK_ITEMS: Final = ("get_global_", "get_group_id", "get_local_", "get_num_groups")


def compiler() -> str | None:
    """The C++ compiler's path, if there is one."""
    return shutil.which("g++") or shutil.which("c++")


def declarations_for_kernels(declared: str) -> str:
    """The text without functions that no kernel calls, by their names or types.

    Kernels of pyopencl, which fill arrays, call functions of work-items alone.
    """
    texts = [path.read_text() for path in KERNELS.rglob("*.cl*")]
    called = {word for text in texts for word in re.findall(r"\w+", text)}

    def kept(match: re.Match[str]) -> str:
        is_called = match[1] in called or match[1].startswith(_OF_WORK_ITEMS)
        return match[0] if is_called and "double" not in match[0] else ""

    return _DECLARATION.sub(kept, declared)


def with_fewer_declarations(real: Path, folder: Path) -> Path:
    """The drivers of pyopencl's wheel by links, where PoCL reads those declarations alone.

    It reads 18,552 lines for each program, in most of the time that a small one takes.

    Args:
        real: the loader in the wheel.
        folder: where to make the links.

    Returns:
        The folder of the drivers; the wheel's own without PoCL.
    """
    packages = real.parents[2]
    if not (packages / DECLARATIONS).exists():
        return real.parent
    declared = declarations_for_kernels((packages / DECLARATIONS).read_text())
    place = folder / f"drivers_{hashlib.sha256(f'{packages}{declared}'.encode()).hexdigest()[:16]}"
    if not place.exists():
        partial = place.with_suffix(f".{os.getpid()}")
        for package in (real.parent, packages / DECLARATIONS.parts[0] / ".libs"):
            for file in filter(Path.is_file, package.rglob("*")):
                link = partial / file.relative_to(packages)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)
        (partial / DECLARATIONS).unlink()
        (partial / DECLARATIONS).write_text(declared)
        partial.rename(place)
    return place / real.parent.relative_to(packages)


def build_library(source: Path, library: Path, drivers: Path | None = None) -> None:
    """Compiles a library that passes on to the OpenCL which the runtime uses now.

    Args:
        source: C or C++ (compiled as C++).
        library: where to write it.
        drivers: where to look for drivers; by default the folder of the real library.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    real = Path(named) if named else pyopencl_library()
    linked = ["-l:libOpenCL.so.1"]
    if real is not None:
        # RPATH, unlike RUNPATH, is also where the real library looks for its drivers.
        linked = [str(real), f"-Wl,--disable-new-dtags,-rpath,{drivers or real.parent}"]
    command = compiler()
    assert command is not None
    subprocess.run(
        [command, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
         f"-I{HEADERS}", "-Wl,--no-as-needed", "-o", library, source, *linked, "-ldl"],
        check=True,
    )  # fmt: skip


def use_mapping_library(folder: Path) -> None:
    """Has this process, and those that it starts, use ``mapping_opencl.cpp``, if tests are to.

    Args:
        folder: where what was compiled is kept.
    """
    wanted = os.environ.get(MAPPING, "0" if os.environ.get("PHONEBIT_TEST_OPENCL") else "1")
    if wanted != "1" or os.environ.get(LIBRARY_VARIABLE) or compiler() is None:
        return
    real = pyopencl_library()
    texts = [*sorted(HERE.glob("mapping_opencl.*")), *sorted(HEADERS.glob("opencl/cl_*.h"))]
    drivers = None if real is None else with_fewer_declarations(real, folder)
    content = b"".join(path.read_bytes() for path in texts) + f"{real} {drivers}".encode()
    library = folder / f"mapping_opencl_{hashlib.sha256(content).hexdigest()[:16]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        try:
            build_library(SOURCE, partial, drivers)
        except subprocess.CalledProcessError:
            if real is not None:
                raise
            return  # there is no OpenCL to link with
        partial.rename(library)
    if drivers is not None:
        # Where the loader of pyopencl's wheel looks for drivers (phonebit/devices/gpus.py).
        os.environ.setdefault("PYOPENCL_HOME", str(drivers.parent))
    os.environ[LIBRARY_VARIABLE] = str(library)


@cache
def mapping_library() -> ctypes.CDLL | None:
    """The library, if the runtime uses it.

    Loaded before pyopencl, it decides where drivers are found.
    """
    path = os.environ.get(LIBRARY_VARIABLE, "")
    if not Path(path).name.startswith(SOURCE.stem):
        return None
    library = ctypes.CDLL(path)
    library.take_mapping_faults.restype = ctypes.c_char_p
    return library


def take_mapping_faults() -> list[str]:
    """What was undefined since the last call; empty without the library."""
    library = mapping_library()
    return [] if library is None else library.take_mapping_faults().decode().splitlines()
