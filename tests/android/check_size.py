"""Fails where a shared library is larger than it may be on a phone.

python check_size.py LIBRARY.so STRIP whole|lean

It is stripped as for an app; STRIP is the tool of its processor, and a kB has 1000 bytes. For
64-bit Arm, with a shared C++ library and pages of 16 kB: the whole engine by gcc 12
(cmake/aarch64-linux-gnu.cmake) has 774 kB, and the limit is just above that; a lean one by clang 19
and lld (cmake/clang-lld-aarch64.cmake, docs/android.md) has 572, and the limit is the goal.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

MOST_KB = {"whole": 780, "lean": 600}


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
    if len(arguments) != 3 or arguments[2] not in MOST_KB:
        print(__doc__, file=sys.stderr)
        return 2
    size_kb = stripped_bytes(Path(arguments[0]), arguments[1]) / 1000
    most_kb = MOST_KB[arguments[2]]
    print(f"{arguments[0]}: {size_kb:.1f} kB stripped, expected less than {most_kb}")
    if size_kb >= most_kb:
        print("`nm --size-sort --print-size -C` on it shows what is large", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
