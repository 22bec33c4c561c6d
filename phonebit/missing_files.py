"""The one wording for a file that is not there."""

from __future__ import annotations

import os
import re
from typing import TypeVar

from phonebit.errors import PhoneBitError

Kind = TypeVar("Kind", bound=PhoneBitError)
_URL = re.compile(r"^(https?|s3|gs|hf):/+")


def missing_file(path: str | os.PathLike[str], kind: type[Kind]) -> Kind:
    """The error to raise.

    Args:
        path: what the user named; ``pathlib`` leaves one slash of a URL's two.
        kind: class of the error.
    """
    text = os.fsdecode(path)
    if _URL.match(text):
        return kind(
            "URLs are not read", where=_URL.sub(r"\1://", text), hint="download the file first"
        )
    return kind("no such file", where=text, hint="check the path")
