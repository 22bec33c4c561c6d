"""Names in the file's STRINGS section: each is stored once."""

from __future__ import annotations


class StringPool:
    """Collects names, after those that a file has already."""

    def __init__(self, strings: bytes = b"") -> None:
        self._strings = bytearray()
        self._known: dict[bytes, int] = {}
        for name in strings.split(b"\0")[:-1]:
            self._known.setdefault(name, len(self._strings))
            self._strings += name + b"\0"

    def add(self, name: str) -> int:
        """Stores a name, which holds no zero character, and returns its offset in bytes."""
        encoded = name.encode()
        if encoded not in self._known:
            self._known[encoded] = len(self._strings)
            self._strings += encoded + b"\0"
        return self._known[encoded]

    def content(self) -> bytes:
        """The STRINGS section."""
        return bytes(self._strings)
