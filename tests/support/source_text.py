"""The comments and the names of source files, as tests of wording read them."""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
C_LIKE = {".c", ".cl", ".clh", ".cpp", ".h", ".inl", ".java", ".kt", ".kts"}
PYTHON = {".py", ".pyi"}
HASH = {".cmake", ".sh", ".toml", ".txt", ".yml"}
NOT_OURS = {"__pycache__", "build", "dist", "site", "_skbuild"}
"""Folders that tools write."""

_C_TOKEN = re.compile(
    r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)
_HASH_COMMENT = re.compile(r"(?:^|\s)#(?!!).*")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_BRACES = re.compile(r"(?<!\{)\{[^{}]+\}")
_BETWEEN = (tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")

Line = tuple[int, str]
"""A line's number, from 1, and text of it."""


@cache
def files() -> tuple[Path, ...]:
    """All files of the tree but those that tools write or fetch."""
    found: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".") and name != ".ci"}
        folders[:] = sorted({*folders} - hidden - NOT_OURS)
        folders[:] = [name for name in folders if not (Path(folder) / name).is_symlink()]
        found += [Path(folder) / name for name in sorted(names)]
    return tuple(found)


def is_python(path: Path, text: str) -> bool:
    return path.suffix in PYTHON or (not path.suffix and "python" in text.partition("\n")[0])


def is_hash(path: Path, text: str) -> bool:
    return path.suffix in HASH or (not path.suffix and text.startswith("#!"))


def comments(path: Path, text: str) -> Iterator[Line]:
    """The lines of comments and docstrings; nothing of a file that is no source."""
    if path.suffix in C_LIKE:
        for match in _C_TOKEN.finditer(text):
            if match["comment"]:
                yield from _lines(text.count("\n", 0, match.start()) + 1, match[0])
    elif is_python(path, text):
        for token in _tokens(text):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        yield from _docstrings(_tokens(text))
    elif is_hash(path, text):
        for number, line in enumerate(text.splitlines(), 1):
            if match := _HASH_COMMENT.search(line):
                yield number, match[0]


def names(path: Path, text: str) -> Iterator[Line]:
    """The names in code: not those in comments and strings, but those in f-strings' braces."""
    if path.suffix in C_LIKE:
        code = _C_TOKEN.sub(lambda match: "\n" * match[0].count("\n"), text)
        for number, line in enumerate(code.splitlines(), 1):
            yield from ((number, name) for name in _NAME.findall(line))
    elif is_python(path, text):
        for token in _tokens(text):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
            elif (
                token.type == tokenize.STRING
                and "f" in token.string.lower().partition(token.string[-1])[0]
            ):
                for braces in _BRACES.findall(token.string):
                    yield from (
                        (token.start[0], name) for name in _NAME.findall(_QUOTED.sub("", braces))
                    )


@lru_cache(maxsize=1)
def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _docstrings(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[Line]:
    """Strings that stand alone: docstrings, and those after constants and fields."""
    before = tokenize.NEWLINE
    for token, after in pairwise(tokens):
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        alone = before in _BETWEEN and after.type in (tokenize.NEWLINE, tokenize.COMMENT)
        text = token.string.lstrip("rR")
        if token.type == tokenize.STRING and alone and text[0] in "\"'":
            yield from _lines(token.start[0], text.strip("\"'"))
        before = token.type


def _lines(first: int, text: str) -> Iterator[Line]:
    yield from enumerate(text.splitlines(), first)
