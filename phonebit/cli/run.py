"""``phonebit run``: classify pictures."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import DeviceOption, JsonOption, PrecisionOption, ThreadsOption
from phonebit.cli.picture_options import (
    ColorOption,
    InterpolationOption,
    MeanOption,
    PictureFlags,
    PreprocessingOption,
    RangeOption,
    ResizeOption,
    StdOption,
)
from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.cli.pictures import Picture
    from phonebit.network import Network

LATENCY_RUNS = 9
LATENCY_BUDGET_MS = 100.0
"""A picture's latency is measured this often, or until this much time is spent."""


@dataclass(frozen=True)
class Guess:
    """One class with what the network thinks of it."""

    index: int
    label: str
    score: float
    probability: float


@dataclass(frozen=True)
class Classification:
    """One picture's result; latency is the median of its forward passes alone."""

    picture: Path
    changes: tuple[str, ...]
    guesses: list[Guess]
    latency_ms: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "picture": str(self.picture),
            "changes": list(self.changes),
            "top": [asdict(guess) for guess in self.guesses],
            "latency_ms": self.latency_ms,
        }


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Pictures.")],
    top: Annotated[int, typer.Option(min=1, help="Classes to show.")] = 5,
    threads: ThreadsOption = 0,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "exact",
    as_json: JsonOption = False,
    input_range: RangeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    color: ColorOption = None,
    resize: ResizeOption = None,
    interpolation: InterpolationOption = None,
    preprocessing: PreprocessingOption = None,
) -> None:
    """Classify pictures with a converted network.

    A picture becomes the network's input by the rule in the file; flags change
    the rule.
    """
    from phonebit.cli.pictures import load_picture
    from phonebit.network import Network
    from phonebit.preprocessing_settings import as_settings

    network = Network.load(file, device=device, threads=threads, precision=precision)
    check_classifier(network)
    info = network.inputs[0]
    flags = PictureFlags(input_range, mean, std, color, resize, interpolation, preprocessing)
    rule = flags.rule_for(network, info)
    pictures = [load_picture(path, info, rule) for path in images]
    results = [classify(network, picture, top) for picture in pictures]
    if as_json:
        document = {
            "file": str(file),
            "device": network.device,
            "isa": network.isa,
            "threads": network.threads,
            "preprocessing": as_settings(rule.for_input(info)) if rule else None,
            "results": [result.to_dict() for result in results],
        }
        print_json(document)
        return
    console = output()
    for result in results:
        changed = f"  [dim]{escape(', '.join(result.changes))}[/]" if result.changes else ""
        console.print(
            f"[bold]{escape(str(result.picture))}[/]  {result.latency_ms:.3f} ms{changed}",
            soft_wrap=True,
        )
        console.print(_guess_table(result.guesses))
    console.print(f"[dim]{escape(served_by(network))}[/]")


def check_classifier(network: Network) -> None:
    """Refuse networks that do not map one picture to one vector of class scores.

    Raises:
        InputError: if there are several inputs or outputs, or the output is a map or bits.
    """
    inputs, outputs = network.inputs, network.outputs
    fits = len(inputs) == len(outputs) == 1
    if not fits or outputs[0].shape[:2] != (1, 1) or outputs[0].dtype != "f32":
        raise InputError(
            "this network is no picture classifier",
            where=str(network.path),
            expected="one input and one real-valued output without a map",
            got=f"{[info.shape for info in inputs]} -> {[info.shape for info in outputs]}",
            hint="use phonebit.Network.forward with arrays",
        )


def classify(network: Network, picture: Picture, top: int) -> Classification:
    """Run one picture and rank the classes.

    The first pass through a network touches its weights for the first time and wakes its threads,
    so the latency is the median of the passes after it.

    Args:
        network: a classifier, see ``check_classifier``.
        picture: from ``load_picture``.
        top: classes to keep.

    Returns:
        The best classes, best first, and the latency.
    """
    batch = picture.array[None]
    result = network.forward(batch)
    latencies: list[float] = []
    while len(latencies) < LATENCY_RUNS and sum(latencies) < LATENCY_BUDGET_MS:
        start = time.perf_counter()
        network.forward(batch)
        latencies.append((time.perf_counter() - start) * 1e3)
    scores = np.asarray(result, np.float64).ravel()
    probabilities = scores if ends_in_softmax(network) else softmax(scores)
    labels = network.labels
    order = np.argsort(-scores, kind="stable")[:top]
    guesses = [
        Guess(int(i), label_of(labels, int(i)), float(scores[i]), float(probabilities[i]))
        for i in order
    ]
    return Classification(picture.path, picture.changes, guesses, float(np.median(latencies)))


def ends_in_softmax(network: Network) -> bool:
    """Whether the network's scores are probabilities already."""
    return network.layers[-1].kind == "softmax"


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities from scores: exp(s_i) / sum_j exp(s_j), the maximum taken off first."""
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum(), np.float64)


def label_of(labels: list[str], index: int) -> str:
    """Class name, or "class N" where the file has none."""
    return labels[index] if index < len(labels) else f"class {index}"


def threads_text(count: int) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{count} thread" if count == 1 else f"{count} threads"


def served_by(network: Network) -> str:
    """``cpu:avx512, 2 threads``, or the OpenCL device's name."""
    if network.isa == "opencl":
        return network.device
    return f"{network.device}, {threads_text(network.threads)}"


def _guess_table(guesses: list[Guess]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="cyan")
    for guess in guesses:
        bar = "█" * round(20 * guess.probability)
        table.add_row(f"{100 * guess.probability:.2f} %", escape(guess.label), bar)
    return table
