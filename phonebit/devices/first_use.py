"""What is said once where the first use of an OpenCL device takes long."""

from __future__ import annotations

import sys
from functools import cache

from phonebit.devices.tuning_store import cache_folder


@cache
def announce() -> None:
    """Say on standard error, once a process, that kernels are compiled and tested."""
    kept = f"; results are kept in {folder}" if (folder := cache_folder()) else ""
    if sys.stderr is not None:
        print(
            "phonebit: first use of this OpenCL device: compiling its kernels and testing them, "
            f"which can take a minute{kept}",
            file=sys.stderr,
            flush=True,
        )
