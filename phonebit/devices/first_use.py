"""What is logged once where an OpenCL device takes long, since its kernels are not yet compiled."""

from __future__ import annotations

import logging
from functools import cache

from phonebit.devices.tuning_store import cache_folder

_log = logging.getLogger(__name__)


@cache
def announce() -> None:
    """Log once a process that kernels are compiled; where nobody set up logging, it is shown."""
    kept = f"; results are kept in {folder}" if (folder := cache_folder()) else ""
    _log.warning(
        "phonebit: compiling kernels for their first use on this device, which can take a minute%s",
        kept,
    )
