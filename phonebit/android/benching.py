"""A network measured on a phone by `phonebit_bench`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from phonebit.android.adb import Adb
from phonebit.android.native_tools import BENCH
from phonebit.android.phone import Phone
from phonebit.android.pushing import CACHE_FOLDER, phone_path
from phonebit.android.running import run_tool
from phonebit.errors import DeviceError


def bench_on_phone(
    adb: Adb,
    phone: Phone,
    file: Path,
    flags: Sequence[str],
    *,
    limit_s: float,
    library_path: str | None = None,
    on_message: Callable[[str], None] = lambda _line: None,
) -> dict[str, Any]:
    """Measures a file that was pushed.

    Args:
        adb: the device.
        phone: what it is.
        file: the local one.
        flags: more of `phonebit_bench`.
        limit_s: longest wait.
        library_path: LD_LIBRARY_PATH there; None: as the system has it.
        on_message: called with each line of progress.

    Returns:
        The device's own document, with the local file's name, and the phone's facts as "phone".

    Raises:
        DeviceError: it cannot be measured, or as for ``Adb.shell``.
    """
    text = run_tool(
        adb,
        BENCH,
        [phone_path(file), "--json", "--cache", CACHE_FOLDER, *flags],
        limit_s=limit_s,
        environment={} if library_path is None else {"LD_LIBRARY_PATH": library_path},
        on_message=on_message,
    )
    try:
        document = json.loads(text)
        return {**document, "file": str(file), "phone": phone.to_dict()}
    except (ValueError, TypeError):
        raise DeviceError(
            f"{BENCH} wrote something else than JSON",
            where=adb.serial,
            got=repr(text[:80]),
            hint="push tools of the same version as this package",
        ) from None
