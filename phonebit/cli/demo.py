"""``phonebit demo``: the whole road on a network and images that come with the package."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from phonebit.cli.classify import Classification, classify
from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import DeviceOption, JsonOption, ThreadsOption
from phonebit.cli.run import device_text
from phonebit.display import bytes_text, count_text
from phonebit.display import escape_markup as escape
from phonebit.errors import ModelFormatError

if TYPE_CHECKING:
    from phonebit.network import Network

CHECKPOINT = "fashion_mnist_bnn.h5"
TEST_IMAGES = 10_000
TEST_ACCURACY = 0.9227
"""Of this network on all test images, of which the package has the first two of each class."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo did.

    Attributes:
        source_bytes: size of the checkpoint.
        file_bytes: size of the converted file.
        convert_s: seconds that the conversion took, its checks included.
        binary_mac_share: part of the multiply-accumulates that is binary, 0..1.
        results: one per image, with the class that its file name promises.
    """

    source_bytes: int
    file_bytes: int
    convert_s: float
    binary_mac_share: float
    results: list[tuple[Classification, str]]

    @property
    def right(self) -> int:
        """Images whose best class is the promised one."""
        return sum(result.guesses[0].label == truth for result, truth in self.results)


def demo(
    threads: ThreadsOption = 0, device: DeviceOption = "auto", as_json: JsonOption = False
) -> None:
    """Convert the included Larq network and classify the included images."""
    from phonebit.network import Network

    folder = model_folder()
    with tempfile.TemporaryDirectory(prefix="phonebit-") as scratch:
        target = Path(scratch) / "fashion_mnist.pbit"
        with progress("converting the Larq checkpoint", None, quiet=as_json):
            report, seconds = convert_demo(folder, target)
        network = Network.load(target, device=device, threads=threads)
        result = DemoResult(
            (folder / CHECKPOINT).stat().st_size,
            target.stat().st_size,
            seconds,
            float(report.binary_mac_share),
            _classify_all(network, folder / "images"),
        )
        if as_json:
            print_json(_document(network, result))
        else:
            _print(output(), network, result)


def model_folder() -> Path:
    """The folder with the shipped checkpoint, labels and images.

    Raises:
        ModelFormatError: if this installation lacks it.
    """
    from phonebit import models

    folder = Path(models.__file__).parent / "fashion_mnist"
    if not (folder / CHECKPOINT).is_file():
        raise ModelFormatError(
            "the demo's checkpoint is not part of this installation",
            where=str(folder),
            hint="install phonebit again with `pip install .`",
        )
    return folder


def true_label(image: Path) -> str:
    """The class in an image's name: ``12_ankle_boot.png`` is an ankle_boot."""
    return image.stem.partition("_")[2]


def convert_demo(folder: Path, target: Path) -> tuple[Any, float]:
    """Convert the checkpoint in ``model_folder``; the report, and the seconds that it took."""
    from phonebit.converter.convert import convert
    from phonebit.images.preprocessing import Preprocessing
    from phonebit.images.settings import read_toml

    start = time.perf_counter()
    settings = read_toml(folder / "preprocessing.toml")
    report = convert(
        folder / CHECKPOINT,
        target,
        input_dtype="u8",
        preprocessing=Preprocessing(**settings.fields),
        labels=settings.labels,
    )
    return report, time.perf_counter() - start


def _classify_all(network: Network, folder: Path) -> list[tuple[Classification, str]]:
    from phonebit.images.image_files import image_files, load_image

    info = network.inputs[0]
    rule = network.preprocessing[info.name]
    images = [load_image(path, info, rule) for path in image_files(folder)]
    return [(classify(network, image, 1), true_label(image.path)) for image in images]


NEXT: Final = (
    "phonebit models fashion-larq -o demo.pbit",
    "phonebit bench demo.pbit --profile",
    "phonebit inspect demo.pbit --html demo.html",
)


def _document(network: Network, result: DemoResult) -> dict[str, Any]:
    return {
        "checkpoint": CHECKPOINT,
        "checkpoint_bytes": result.source_bytes,
        "file_bytes": result.file_bytes,
        "convert_s": result.convert_s,
        "binary_mac_share": result.binary_mac_share,
        "device": network.device,
        "isa": network.isa,
        "threads": network.threads,
        "kernels": dict(Counter(layer.kernel for layer in network.layers)),
        "right": result.right,
        "test_set": {"pictures": TEST_IMAGES, "accuracy": TEST_ACCURACY},
        "next": list(NEXT),
        "pictures": [
            {**classification.to_dict(), "truth": truth} for classification, truth in result.results
        ],
    }


def _print(console: Console, network: Network, result: DemoResult) -> None:
    macs = sum(layer.macs for layer in network.layers)
    console.print(
        f"[bold]1  convert[/]  {CHECKPOINT} {bytes_text(result.source_bytes)} -> .pbit "
        f"{bytes_text(result.file_bytes)} in {result.convert_s:.1f} s"
    )
    console.print(
        f"   {len(network.layers)} ops, {count_text(macs)} MACs, "
        f"{100 * result.binary_mac_share:.1f} % of them binary"
    )
    console.print("[bold]2  run[/]      the first two test images of each class of Fashion-MNIST")
    console.print(_guess_table(result.results))
    latency_ms = median(classification.latency_ms for classification, _ in result.results)
    console.print(
        f"   {result.right} of {len(result.results)} right, {latency_ms:.3f} ms per image; "
        f"{100 * TEST_ACCURACY:.2f} % of all {TEST_IMAGES:,} test images"
    )
    device = device_text(network.device, network.isa, network.threads)
    console.print(f"[bold]3  where[/]    {escape(device)}; kernels:")
    for kernel, count in Counter(layer.kernel for layer in network.layers).most_common():
        console.print(f"   {count:3d} x {escape(kernel)}")
    console.print("[bold]4  try next[/]")
    for command in NEXT:
        console.print(f"   {escape(command)}", soft_wrap=True)


def _guess_table(results: list[tuple[Classification, str]]) -> Table:
    """A row for each class: what its images are taken for."""
    rows: dict[str, list[str]] = {}
    for classification, truth in results:
        guess = classification.guesses[0]
        text = f"{escape(guess.label)} {100 * guess.probability:.1f} %"
        is_right = guess.label == truth
        rows.setdefault(truth, []).append(
            f"[green]{text}[/]" if is_right else f"[red]{text}: no[/]"
        )
    table = Table("   class", "first", "second", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for truth, cells in rows.items():
        table.add_row(f"   {escape(truth)}", *cells)
    return table
