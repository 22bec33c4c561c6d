"""Fails where libphonebit.so uses a function that Android's C library does not have.

python check_bionic_symbols.py LIBRARY.so NM

LIBRARY is a shared build with musl (cmake/clang-musl.cmake), whose names are the plain ones of
POSIX as bionic's are, and which carries libc++ within itself as an app with the NDK's c++_static
does. NM is the tool of its processor. Functions that bionic has are listed in bionic_symbols.txt,
with the API level that brought them; this library promises API 24.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

API_LEVEL = 24
LIST = Path(__file__).parent / "bionic_symbols.txt"
# Names by which musl means what bionic names otherwise.
MUSL_NAMES = {"__errno_location": "__errno"}


def bionic_levels(text: str) -> dict[str, int]:
    """API level of each function of a list as bionic_symbols.txt."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: int(level) for name, level in lines}


def needed_symbols(listing: str) -> list[str]:
    """Functions that a library must find elsewhere, from `nm -D --undefined-only`.

    Weak ones are left out: they may be absent.
    """
    fields = (line.split() for line in listing.splitlines())
    names = (words[1].split("@")[0] for words in fields if len(words) == 2 and words[0] == "U")
    return sorted(MUSL_NAMES.get(name, name) for name in names)


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
    command = [nm, "-D", "--undefined-only", library]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    needed = needed_symbols(listing)
    if "memcpy" not in needed:
        print(f"{library} asks for no memcpy: expected a shared library", file=sys.stderr)
        return 2
    found = complaints(needed, bionic_levels(LIST.read_text()))
    for text in found:
        print(text, file=sys.stderr)
    print(f"{library}: {len(needed)} functions, {len(found)} that API {API_LEVEL} lacks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
