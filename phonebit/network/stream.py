"""Batches one after the other, so that the device need not wait for the host between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

Finish = Callable[[], Any]
"""Waits for an inference; returns its result."""

_END: Final = object()


class Stream:
    """The results of a stream of batches, in order; for ``for`` and for ``async for``.

    While the device computes a batch, the next one is taken from the source and uploaded, and the
    result of the one before is copied back: a result comes when the batch after it was begun.

    Args:
        begin: begins the inference of a batch.
        batches: the source; an async one only for ``async for``.
    """

    def __init__(
        self, begin: Callable[[Any], Finish], batches: Iterable[Any] | AsyncIterable[Any]
    ) -> None:
        self._begin = begin
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        before: Finish | None = None
        if not isinstance(self._batches, Iterable):
            raise TypeError("the batches are an async source: use `async for`")
        for batch in self._batches:
            begun = self._begin(batch)
            if before is not None:
                yield before()
            before = begun
        if before is not None:
            yield before()

    async def __aiter__(self) -> AsyncIterator[Any]:
        """The event loop runs on: the source, uploads and waits are in threads."""
        before: Finish | None = None
        async for batch in _async_batches(self._batches):
            begun = await asyncio.to_thread(self._begin, batch)
            if before is not None:
                yield await asyncio.to_thread(before)
            before = begun
        if before is not None:
            yield await asyncio.to_thread(before)


async def _async_batches(batches: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(batches, AsyncIterable):
        async for batch in batches:
            yield batch
        return
    source = iter(batches)
    while (batch := await asyncio.to_thread(next, source, _END)) is not _END:
        yield batch
