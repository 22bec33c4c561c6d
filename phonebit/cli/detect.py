"""Detection in images for ``phonebit run``: boxes on the terminal, as JSON, and drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from rich.console import Console
from rich.table import Table

from phonebit.cli.classify import print_heading, timed_forward
from phonebit.detection import Detection, Limits, detect
from phonebit.detection.drawing import draw_detections
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError
from phonebit.images.fitting import to_mode
from phonebit.images.image_files import ImageInput, open_image
from phonebit.output_files import FileKind, check_output, write_output

if TYPE_CHECKING:
    from phonebit.network import Network


@dataclass
class Detections:
    """One image's result; latency is the median of its inferences alone.

    ``drawn`` is the file that shows the boxes, if there is one.
    """

    image: Path
    changes: tuple[str, ...]
    detections: list[Detection]
    latency_ms: float
    drawn: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "image": str(self.image),
            "changes": list(self.changes),
            "detections": [found.to_dict() for found in self.detections],
            "drawn": str(self.drawn) if self.drawn else None,
            "latency_ms": self.latency_ms,
        }


def drawing_targets(
    images: Sequence[Path], to: Path, inputs: Sequence[Path | None], replace_any: bool
) -> list[Path]:
    """Where the drawings go: one image to the file or folder ``to``, several to the folder.

    Args:
        images: the images.
        to: what the user named.
        inputs: what else is read.
        replace_any: also replace files that are no image of the drawing's format.

    Raises:
        InputError: if ``to`` is no folder and there are several images, if its name tells no
            image format, if two images would get one name, or if a drawing would replace an
            input or a file of another kind.
    """
    targets = _named_targets(images, to)
    for target in targets:
        check_output(target, image_kind(target), [*images, *inputs], replace_any)
    return targets


def _named_targets(images: Sequence[Path], to: Path) -> list[Path]:
    if len(images) == 1 and not to.is_dir():
        known = Image.registered_extensions()
        if known.get(to.suffix.lower()) not in Image.SAVE:
            raise InputError(
                "cannot draw into a file of this kind",
                where=str(to),
                expected="a name that ends in .png, .jpg or another image format, or a folder",
                got=repr(to.suffix),
            )
        return [to]
    if not to.is_dir():
        raise InputError(
            "several images need a folder",
            where=str(to),
            got=f"{len(images)} images and no such folder",
            hint="make the folder first",
        )
    targets = [to / f"{path.stem}.png" for path in images]
    twice = sorted({str(target) for target in targets if targets.count(target) > 1})
    if twice:
        raise InputError("two images would be drawn into one file", where=", ".join(twice))
    return targets


def detect_in(network: Network, image: ImageInput, limits: Limits) -> Detections:
    """Run one image and decode what comes out.

    Args:
        network: a detector.
        image: from ``load_image``.
        limits: what counts as found.
    """
    result, latency_ms = timed_forward(network, image)
    head = network.detection[network.outputs[0].name]
    found = detect(result, head, image.placement, network.labels, limits)
    return Detections(image.path, image.changes, found, latency_ms)


def image_kind(target: Path) -> FileKind:
    """The kind of image that a file's suffix, known to Pillow, stands for."""
    name = Image.registered_extensions()[target.suffix.lower()]
    accept = Image.OPEN[name][1] if name in Image.OPEN else None
    return FileKind(f"a {name} image", lambda head: accept is not None and bool(accept(head[:16])))


def draw_into(target: Path, result: Detections, replace_any: bool) -> Path:
    """Write a copy of the image with its boxes; an existing file is replaced when it is complete.

    Raises:
        InputError: if the file is the image or of another kind, or cannot be written.
    """
    drawing = draw_detections(to_mode(open_image(result.image), "RGB", []), result.detections)
    kind = Image.registered_extensions()[target.suffix.lower()]
    stream = io.BytesIO()
    drawing.save(stream, kind)
    try:
        inputs = [result.image]
        write_output(target, stream.getvalue(), image_kind(target), inputs, replace_any)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            where=str(target),
            hint="choose another output path",
        ) from error
    return target


def print_detections(console: Console, result: Detections) -> None:
    """One image's boxes on the terminal."""
    print_heading(console, result.image, result.latency_ms, result.changes)
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    table.add_column("score", justify="right")
    table.add_column("what")
    for side in ("left", "top", "right", "bottom"):
        table.add_column(side, justify="right")
    for found in result.detections:
        sides = (f"{side:.0f}" for side in found.box)
        table.add_row(f"{100 * found.score:.1f} %", escape(found.label), *sides)
    console.print(table if result.detections else "  nothing found")
    if result.drawn:
        console.print(f"  [dim]drawn into[/] {escape(str(result.drawn))}", soft_wrap=True)
