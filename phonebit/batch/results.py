"""The folder of results: parts that appear whole, and what a second start finds in them."""

from __future__ import annotations

import io
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from phonebit.errors import InputError
from phonebit.output_files import write_atomically
from phonebit.text_files import parse_json, read_text

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "jsonl"]
JOB_FILE: Final = "_job.json"
"""What the results are of. Readers of folders of Parquet ignore names with an underscore."""
PART_ROWS: Final = 100_000
PART_SECONDS: Final = 30.0
"""A part is written when it has so many rows or is so old: what a crash of the machine costs."""
Rows = Mapping[str, Sequence[Any]]


class ResultFolder:
    """Rows written as ``part-*.parquet`` or ``part-*.jsonl``, one per image.

    Attributes:
        rows: added by this object.
        errors: rows of these with an error.
    """

    def __init__(self, path: Path, form: Format, id_column: str, job: Mapping[str, Any]) -> None:
        """Open or make a folder.

        Args:
            path: the folder.
            form: of the parts.
            id_column: the column that tells the images apart.
            job: what the results depend on, JSON-ready; another start must have the same.

        Raises:
            InputError: if the folder holds results of another job, or other files.
            OSError: if it cannot be made or read.
        """
        self.path = path
        self.rows = self.errors = 0
        self._form = form
        self._id = id_column
        self._run = secrets.token_hex(4)
        self._parts = 0
        self._columns: dict[str, list[Any]] = {}
        self._begin = time.monotonic()
        path.mkdir(parents=True, exist_ok=True)
        self._check_job({**job, "format": form, "id": id_column})

    def _check_job(self, job: Mapping[str, Any]) -> None:
        file = self.path / JOB_FILE
        if not file.exists():
            if others := sorted(self.path.iterdir()):
                raise InputError(
                    "not a folder of results, and not empty",
                    where=str(self.path),
                    got=others[0].name,
                    hint="give a new folder",
                )
            write_atomically(file, json.dumps(job, indent=2).encode())
            return
        before = parse_json(read_text(file, "the file of a batch"), str(file))
        changed = [
            name for name in job if not isinstance(before, dict) or before.get(name) != job[name]
        ]
        if changed:
            raise InputError(
                f"the folder holds results with another {', '.join(changed)}",
                where=str(self.path),
                hint="give a new folder, or start the batch as before",
            )

    def done(self) -> list[Any]:
        """The images that have a row.

        Raises:
            InputError: if a part is damaged.
            OSError: if one cannot be read.
        """
        found: list[Any] = []
        for part in sorted(self.path.glob(f"part-*.{self._form}")):
            try:
                found += self._ids(part)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    "a damaged part",
                    where=str(part),
                    got=str(error),
                    hint="remove it: its images are then computed again",
                ) from None
        return found

    def _ids(self, part: Path) -> list[Any]:
        if self._form == "parquet":
            import pyarrow.parquet as pq

            ids: list[Any] = pq.read_table(part, columns=[self._id])[self._id].to_pylist()
            return ids
        with part.open(encoding="utf-8") as lines:
            return [json.loads(line)[self._id] for line in lines]

    def add(self, rows: Rows) -> None:
        """Add rows; from time to time a part is written."""
        for name, column in rows.items():
            self._columns.setdefault(name, []).extend(column)
        self.rows += len(rows["error"])
        self.errors += sum(1 for error in rows["error"] if error)
        waiting = len(self._columns["error"])
        if waiting >= PART_ROWS or time.monotonic() - self._begin >= PART_SECONDS:
            self.write()

    def write(self) -> None:
        """Write what was added as a part.

        Raises:
            OSError: if that fails.
        """
        if self._columns.get("error"):
            content = _parquet(self._columns) if self._form == "parquet" else _jsonl(self._columns)
            name = f"part-{self._run}-{self._parts:06d}.{self._form}"
            write_atomically(self.path / name, content)
            self._parts += 1
        self._columns = {}
        self._begin = time.monotonic()


def _parquet(columns: Rows) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: pa.array(values, _type(name)) for name, values in columns.items()}
    stream = io.BytesIO()
    pq.write_table(pa.table(arrays), stream)
    return stream.getvalue()


def _type(name: str) -> pa.DataType | None:
    """Of results, whose rows may all be empty; None: as the values are."""
    import pyarrow as pa

    box = {"index": pa.int64(), "label": pa.string(), "score": pa.float64()}
    detection = pa.struct({**box, "box": pa.list_(pa.float64(), 4)})
    return pa.list_(detection) if name == "detections" else None


def _jsonl(columns: Rows) -> bytes:
    rows = zip(*columns.values(), strict=True)
    lines = (json.dumps(dict(zip(columns, map(_plain, row), strict=True))) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def _plain(value: Any) -> Any:
    """NaN, which JSON lacks, becomes null, and bytes the text that they are."""
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def missing(ids: Iterable[Any], done: Iterable[Any]) -> list[Any]:
    """The images without a row, each once, in their order."""
    known = set(done)
    return [one for one in dict.fromkeys(ids) if one not in known]
