"""Fails where a shared library is larger than it may be on a phone.

python check_size.py LIBRARY.so STRIP MOST

It is stripped as for an app by STRIP, the tool of its processor, and must have less than MOST kB of
1000 bytes; docs/android.md names the limits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def stripped_bytes(library: Path, strip: str) -> int:
    """Bytes of the file without symbols that only debuggers read; the file itself stays as it is.

    Raises:
        subprocess.CalledProcessError: STRIP refuses the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / library.name
        subprocess.run([strip, "--strip-unneeded", library, "-o", copy], check=True)
        return copy.stat().st_size


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or not arguments[2].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    size_kb, max_kb = stripped_bytes(Path(arguments[0]), arguments[1]) / 1000, int(arguments[2])
    print(f"{arguments[0]}: {size_kb:.1f} kB stripped, expected less than {max_kb}")
    if size_kb >= max_kb:
        print("`nm --size-sort --print-size -C` on it shows what is large", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
