"""What is said once where an OpenCL device takes long, since its kernels are not yet compiled."""

from __future__ import annotations

import sys
from functools import cache

from phonebit.devices.tuning_store import cache_folder


@cache
def announce() -> None:
    """Say on standard error, once a process, that kernels are compiled."""
    kept = f"; results are kept in {folder}" if (folder := cache_folder()) else ""
    if sys.stderr is not None:
        print(
            "phonebit: compiling OpenCL kernels for their first use on this device, which can take "
            f"a minute{kept}",
            file=sys.stderr,
            flush=True,
        )
