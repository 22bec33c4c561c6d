"""What a collection measures, as a list: the same for every device, whatever measures it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final, NamedTuple

from phonebit.errors import InputError
from phonebit.planner.measure.measuring import LayerTimes
from phonebit.planner.measure.sampling import PartPair, sample_cuts, sample_layers
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import SyncSample

MAXIMUM: Final = {"layers": 100_000, "cuts": 1000, "turns": 10_000, "rounds": 1000}

SYNC_LAYERS: Final = tuple(
    LayerShape(
        op="elementwise", in_h=32, in_w=width, in_c=64, out_h=32, out_w=width, out_c=64,
        input="f32", operand_channels=(64,), values=True,
    )
    for width in (1, 4, 16, 64, 256)
)  # fmt: skip
"""Layers of almost no work, whose output is 8 kB to 2 MB: cut in two, they tell what the
synchronization of both processors costs."""
SYNC_CUTS: Final = (4, 16, 28)
"""Their rows of the GPU."""


class Way(NamedTuple):
    """How processors share memory, and wait for each other."""

    sharing: str
    synchronization: str


WAYS: Final = tuple(
    Way(*names) for names in product(("svm", "map", "copy"), ("polling", "events", "user_events"))
)
"""All, the cheaper ones first."""


@dataclass(frozen=True)
class CollectionPlan:
    """What is to be measured.

    Args:
        layers: How many random layers.
        threads: Numbers of CPU threads.
        cuts: Most parts of a layer in each direction.
        turns: How often a part is measured, of which the minimum counts.
        rounds: How often everything is measured. A device is slower now and then, for seconds; so
            rounds follow one another, and the minimum of a part's times counts.
        seed: Of layers, cuts and weights.

    Raises:
        InputError: A number is so large that nobody could wait for the end.
    """

    layers: int = 1000
    threads: tuple[int, ...] = (1,)
    cuts: int = 3
    turns: int = 16
    rounds: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, maximum in MAXIMUM.items():
            if getattr(self, name) > maximum:
                raise InputError(f"collection: {name}", expected=f"at most {maximum}")


@dataclass(frozen=True)
class Order:
    """One layer to load, and the pairs of parts to measure of it.

    ``is_sync`` says that they tell what a synchronization costs, not how fast the processors are.
    """

    layer: LayerShape
    threads: int
    is_sync: bool
    pairs: tuple[PartPair, ...]
    turns: int
    round: int

    @property
    def text(self) -> str:
        """For people who wait."""
        layer = self.layer
        if not self.is_sync:
            return f"{layer.family} {layer.out_h}x{layer.out_w}x{layer.out_c}"
        kilobytes = layer.output_bytes(layer.whole) / 1000
        return f"synchronization: {kilobytes:.0f} kB"


@dataclass(frozen=True)
class Measurement:
    """What an order found: times and choices of its pairs, and times of the probe meanwhile."""

    times: tuple[LayerTimes, ...]
    choices: tuple[str, ...]
    probe: LayerTimes


def choices_of(launches: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """Kernels with parameters by the GPU's launches for pairs; "none": nothing was launched."""
    return tuple(str(of_pair[-1]["choice"]) if of_pair else "none" for of_pair in launches)


def make_orders(plan: CollectionPlan) -> Iterator[Order]:
    """The orders of a collection by rounds: data transfers and random layers.

    So a collection that runs out of time has fewer rounds, then fewer layers, but what
    synchronization costs. Of a layer each processor is measured alone with all of it, then both
    with a cut layer at the same time.
    """
    for number in range(plan.rounds):
        for threads, layer in product(plan.threads, SYNC_LAYERS):
            halves = tuple(layer.whole.cut(row=row)[::-1] for row in SYNC_CUTS)
            yield Order(layer, threads, True, halves, plan.turns, number)
        for layer in islice(sample_layers(plan.seed), plan.layers):
            cuts = sample_cuts(layer, plan.cuts, plan.seed)
            pairs: tuple[PartPair, ...] = ((layer.whole, None), (None, layer.whole), *cuts)
            for threads in plan.threads:
                yield Order(layer, threads, False, pairs, plan.turns, number)


def handover(layer: LayerShape, way: Way, threads: int, pair: PartPair, us: float) -> SyncSample:
    """A layer's data transfer: each processor gets what the other one wrote of the output."""
    to_gpu, to_cpu = (round(layer.output_bytes(part)) for part in pair if part is not None)
    return SyncSample(threads, *way, (to_cpu, to_gpu), round(us, 4))
