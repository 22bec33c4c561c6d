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
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from phonebit.devices.opencl import LIBRARY_VARIABLE, pyopencl_library

HERE: Final = Path(__file__).parent
SOURCE: Final = HERE / "mapping_opencl.cpp"
HEADERS: Final = HERE.parents[1] / "runtime" / "opencl" / "include"
MAPPING: Final = "PHONEBIT_TEST_MAPPING"
"""Environment variable: whether mappings have memory of their own, "0" or "1"."""


def compiler() -> str | None:
    """The C++ compiler's path, if there is one."""
    return shutil.which("g++") or shutil.which("c++")


def build_library(source: Path, library: Path) -> None:
    """Compiles a library that passes on to the OpenCL which the runtime uses now.

    Args:
        source: C or C++ (compiled as C++).
        library: where to write it.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    real = Path(named) if named else pyopencl_library()
    linked = ["-l:libOpenCL.so.1"]
    if real is not None:
        # RPATH, unlike RUNPATH, is also where the real library looks for its drivers.
        linked = [str(real), f"-Wl,--disable-new-dtags,-rpath,{real.parent}"]
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
    content = b"".join(path.read_bytes() for path in texts) + str(real).encode()
    library = folder / f"mapping_opencl_{hashlib.sha256(content).hexdigest()[:16]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        try:
            build_library(SOURCE, partial)
        except subprocess.CalledProcessError:
            if real is not None:
                raise
            return  # there is no OpenCL to link with
        partial.rename(library)
    if real is not None:
        # Where the loader of pyopencl's wheel looks for drivers (phonebit/devices/opencl.py).
        os.environ.setdefault("PYOPENCL_HOME", str(real.parent.parent))
    os.environ[LIBRARY_VARIABLE] = str(library)


@cache
def mapping_library() -> ctypes.CDLL | None:
    """The library, if the runtime uses it."""
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
