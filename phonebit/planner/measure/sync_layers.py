"""What meetings of both processors cost: layers of almost no work, of growing size, cut in two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import SyncSample

PartPair = tuple[OutputPart | None, OutputPart | None]
"""What the CPU and the GPU compute of a layer in one measurement; None: nothing."""

ROWS: Final = 32
WIDTHS: Final = (1, 4, 16, 64, 256)
CHANNELS: Final = 64
SHARES: Final = (4, 16, 28)
"""Rows of the GPU."""


class Way(NamedTuple):
    """How processors share memory, and wait for each other."""

    sharing: str
    synchronization: str


WAYS: Final = tuple(
    Way(sharing, synchronization)
    for sharing in ("svm", "map", "copy")
    for synchronization in ("polling", "events", "user_events")
)
"""All, the cheaper ones first."""


def sync_layers() -> Iterator[LayerShape]:
    """Element-wise layers whose output is 8 kB to 2 MB."""
    for width in WIDTHS:
        yield LayerShape(
            op="elementwise", in_h=ROWS, in_w=width, in_c=CHANNELS, out_h=ROWS, out_w=width,
            out_c=CHANNELS, input="f32", operand_channels=(CHANNELS,), values=True,
        )  # fmt: skip


def sync_cuts(layer: LayerShape) -> tuple[PartPair, ...]:
    """The measurements of one of ``sync_layers``."""
    return tuple(layer.whole.cut(row=row)[::-1] for row in SHARES)


def handover(layer: LayerShape, way: Way, threads: int, pair: PartPair, us: float) -> SyncSample:
    """A layer's handover: each processor gets what the other one wrote of the output."""
    to_gpu, to_cpu = (round(layer.output_bytes(part)) for part in pair if part is not None)
    return SyncSample(threads, *way, (to_cpu, to_gpu), round(us, 4))
