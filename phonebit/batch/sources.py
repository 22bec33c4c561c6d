"""Images as a data set of Ray Data, with a column that tells them apart."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from phonebit.batch.results import missing
from phonebit.errors import InputError
from phonebit.images.image_files import images_below
from phonebit.text_files import MAX_RECORD_BYTES, read_text

if TYPE_CHECKING:
    import pyarrow as pa
    import ray
    from ray.data import Dataset

IMAGE_COLUMNS: Final = ("image", "bytes", "path")
"""The first of these that a source has are its images, unless the user says otherwise."""
ID_COLUMNS: Final = ("id", "path")
PATH: Final = "path"


@dataclass(frozen=True)
class Source:
    """Images.

    Attributes:
        dataset: with the two columns.
        column: the images.
        id: the column that tells them apart.
        total: images, without those that are done, or None if only reading would tell.
    """

    dataset: Dataset
    column: str
    id: str
    total: int | None = None


def listed_paths(location: str) -> list[str] | None:
    """The image files of a folder, and of those in it, or of a list file; None: a table.

    Raises:
        InputError: if there are none.
        OSError: if it cannot be read.
    """
    path = Path(location)
    if path.is_dir() and not any(path.glob("*.parquet")):
        files = images_below(path)
    elif path.suffix.lower() == ".txt":
        lines = read_text(path, "a list of images", MAX_RECORD_BYTES).splitlines()
        files = [path.parent / line.strip() for line in lines if line.strip()]
        if not files:
            raise InputError("no images in it", where=location, expected="a path per line")
    else:
        if "://" not in location:
            path.stat()  # a missing file is the operating system's to say, before Ray starts
        return None
    return [os.path.abspath(file) for file in files]  # noqa: PTH100 - links stay as they are


def open_paths(paths: Sequence[str], done: Sequence[Any], block: int) -> Source:
    """A data set of image files, so many a block, without those that are done."""
    import pyarrow as pa
    import ray.data

    rest = missing(paths, done)
    table = pa.table({PATH: pa.array(rest, pa.string())})
    blocks = [table.slice(start, block) for start in range(0, len(rest), block)]
    return Source(ray.data.from_arrow(blocks or table), PATH, PATH, len(rest))


def open_table(location: str, reader: str | None, column: str | None, key: str | None) -> Source:
    """A data set of one of Ray Data's readers.

    Args:
        location: what the reader reads.
        reader: the end of its name: "parquet" for ``ray.data.read_parquet``; None: "parquet".
        column: the images; None: the usual names.
        key: the column that tells images apart; None: the usual names.

    Raises:
        InputError: if there is no such reader or column.
    """
    import ray.data

    read = getattr(ray.data, f"read_{reader or 'parquet'}", None)
    if read is None:
        known = (name.removeprefix("read_") for name in dir(ray.data) if name.startswith("read_"))
        raise InputError("no such reader", expected=", ".join(known), got=reader)
    paths = reader != "parquet" and "include_paths" in inspect.signature(read).parameters
    dataset = read(location, **({"include_paths": True} if paths and reader else {}))
    names = dataset.schema().names
    column = _chosen(location, "--column", column, IMAGE_COLUMNS, names)
    key = _chosen(location, "--id", key, ID_COLUMNS, names)
    total = dataset.count() if reader in (None, "parquet") else None
    return Source(dataset.select_columns(list({column: 0, key: 0})), column, key, total)


def _chosen(
    location: str, flag: str, wanted: str | None, usual: Sequence[str], names: Sequence[str]
) -> str:
    chosen = next((name for name in ([wanted] if wanted else usual) if name in names), None)
    if chosen is None:
        raise InputError(
            f"no column for {flag}",
            where=location,
            expected=wanted or " or ".join(usual),
            got=", ".join(names),
            hint=f"give it with {flag}",
        )
    return chosen


def without_done(source: Source, done: Sequence[Any], block: int) -> Source:
    """The images of a table that have no row yet, so many a block."""
    import pyarrow as pa
    import ray

    dataset = source.dataset
    if done:
        dataset = dataset.map_batches(
            _rest,
            batch_format="pyarrow",
            fn_kwargs={"key": source.id, "done": [ray.put(pa.array(done))]},
        )
    dataset = dataset.repartition(target_num_rows_per_block=block)
    total = None if source.total is None else source.total - len(done)
    return Source(dataset, source.column, source.id, total)


def _rest(table: pa.Table, key: str, done: Sequence[ray.ObjectRef]) -> pa.Table:
    """``missing`` for a block; the reference is in a list, so that Ray passes it on as it is."""
    import pyarrow.compute as pc
    import ray

    found = ray.get(done[0])
    return table.filter(pc.invert(pc.is_in(table[key], value_set=found.cast(table[key].type))))
