"""Fails where libphonebit.a calls a function that Android's C library does not have.

python check_bionic_symbols.py LIBRARY.a NM

LIBRARY is a static build with musl (cmake/zig.cmake), whose names are the plain ones of
POSIX as bionic's are; NM is the tool of its processor. What libc++ and the compiler's own library
ask for does not count: the NDK brings them for each API level. Functions that bionic has are listed
in bionic_symbols.txt, with the API level that brought them; this library promises API 24.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

API_LEVEL = 24
LIST = Path(__file__).parent / "bionic_symbols.txt"
# Names by which musl means what bionic names otherwise. Clang makes bcmp of some calls of memcmp,
# but not for Android.
MUSL_NAMES = {"__errno_location": "__errno", "bcmp": "memcmp"}
# Of libc++ and the compiler's library.
CXX_PREFIXES = ("_Z", "__cxa_", "__gxx_", "_Unwind_", "__dso_handle")


def bionic_levels(text: str) -> dict[str, int]:
    """API level of each function of a list as bionic_symbols.txt."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: int(level) for name, level in lines}


def needed_symbols(listing: str) -> list[str]:
    """Functions of the C library that a static library calls, from what `nm` says of it.

    Weak ones are left out: they may be absent.
    """
    fields = [line.split() for line in listing.splitlines()]
    defined = {words[2] for words in fields if len(words) == 3}
    called = {words[1] for words in fields if len(words) == 2 and words[0] == "U"} - defined
    names = {name for name in called if not name.startswith(CXX_PREFIXES)}
    return sorted({MUSL_NAMES.get(name, name) for name in names})


def complaints(needed: list[str], levels: dict[str, int]) -> list[str]:
    """What is wrong, one line a function."""
    texts = []
    for name in needed:
        if name not in levels:
            texts.append(
                f"{name}: not in {LIST.name}; if AOSP's libc.map.txt, libm.map.txt or "
                "libdl.map.txt has it, add it there with its `introduced=` level; else call "
                "something that both POSIX and bionic have"
            )
        elif levels[name] > API_LEVEL:
            texts.append(
                f"{name}: bionic has it since API {levels[name]}, expected at most {API_LEVEL}; "
                "find it by dlsym at run time, or call something older"
            )
    return texts


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    library, nm = arguments
    listing = subprocess.run([nm, library], check=True, capture_output=True, text=True).stdout
    needed = needed_symbols(listing)
    if "memcpy" not in needed:
        print(f"{library} calls no memcpy: expected a whole static library", file=sys.stderr)
        return 2
    found = complaints(needed, bionic_levels(LIST.read_text()))
    for text in found:
        print(text, file=sys.stderr)
    print(f"{library}: {len(needed)} functions, {len(found)} that API {API_LEVEL} lacks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
