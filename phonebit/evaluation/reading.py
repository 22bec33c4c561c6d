"""Samples read ahead by several threads while the network computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phonebit.evaluation.samples import Sample
from phonebit.images.fitting import FittedImage
from phonebit.images.image_files import rule_for_levels
from phonebit.images.preprocessing import Preprocessing
from phonebit.images.reading import read_image
from phonebit.layer_info import TensorInfo


@dataclass(frozen=True)
class Read:
    """A sample as the network reads it, or why it cannot be read."""

    sample: Sample
    image: FittedImage | None
    error: str = ""


def read_ahead(
    samples: Sequence[Sample],
    info: TensorInfo,
    rule: Preprocessing | None,
    batch: int,
    workers: int,
) -> Iterator[list[Read]]:
    """Read samples in order, batch by batch; within ``image_warnings``.

    Args:
        samples: the data set.
        info: the network's input.
        rule: what images become, as for ``load_image``.
        batch: samples at a time; as many for each thread are read ahead.
        workers: threads.

    Raises:
        InputError: if there is no rule for images of a real-valued input.
    """
    if any(isinstance(s.image, Path) or s.image.dtype == np.uint8 for s in samples):
        rule = rule_for_levels(rule, info)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="phonebit-eval")
    waiting: deque[Future[Read]] = deque()
    rest = iter(samples)
    try:
        for sample in rest:
            waiting.append(pool.submit(_read, sample, info, rule))
            if len(waiting) >= (workers + 1) * batch:
                yield [waiting.popleft().result() for _ in range(batch)]
        while waiting:
            yield [waiting.popleft().result() for _ in range(min(batch, len(waiting)))]
    finally:
        pool.shutdown(cancel_futures=True)


def _read(sample: Sample, info: TensorInfo, rule: Preprocessing | None) -> Read:
    image = read_image(sample.image, info, rule)
    return Read(sample, None, image) if isinstance(image, str) else Read(sample, image)
