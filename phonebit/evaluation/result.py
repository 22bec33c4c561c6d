"""What an evaluation found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class ImageResult:
    """One image.

    Attributes:
        image: its path, or its place in an array.
        truth: its class, or the objects in it.
        engine: the class that the file gives it, or the number of boxes; None after an error.
        source: the same of the source network, if there is one.
        error: why the image could not be read, or "".
    """

    image: str
    truth: str
    engine: str | int | None = None
    source: str | int | None = None
    error: str = ""


@dataclass(frozen=True)
class SourceResult:
    """The source network on the same images.

    Attributes:
        name: what the user called it.
        computed_by: "Keras", "PyTorch", "ONNX" or "TensorFlow Lite"; or "interpreter", the
            converter's own.
        reason: why the framework did not compute, or "".
        metrics: as of the engine.
        max_abs_difference: between the outputs.
        same: images of which file and source say the same: best class, or number of boxes.
    """

    name: str
    computed_by: str
    reason: str
    metrics: dict[str, Any]
    max_abs_difference: float
    same: int


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How good a file is on a data set.

    Attributes:
        file: the ``.pbit`` file.
        data: the data set.
        task: what was asked.
        matched_by: how the data set's classes were found: by the file's "labels", as "numbers", or
            by the "order" of their names.
        engine: metrics, 0..1, by name, and ``classes``, a list with an entry per class; see
            docs/eval.md.
        source: the source network next to it, if one was given.
        images: one entry per image, in the order of the data set.
    """

    file: str
    data: str
    task: Literal["classify", "detect"]
    matched_by: str
    engine: dict[str, Any]
    source: SourceResult | None
    images: Sequence[ImageResult]

    @property
    def errors(self) -> list[ImageResult]:
        """Images that could not be read; no metric counts them."""
        return [image for image in self.images if image.error]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        rows = [asdict(image) for image in self.images]
        if self.source is None:
            for row in rows:
                del row["source"]
        return {
            "file": self.file,
            "data": self.data,
            "task": self.task,
            "matched_by": self.matched_by,
            "evaluated": len(self.images) - len(self.errors),
            "errors": len(self.errors),
            "engine": self.engine,
            "source": None if self.source is None else asdict(self.source),
            "images": rows,
        }

    def __repr__(self) -> str:
        """One line."""
        shown = ", ".join(
            f"{name} {100 * value:.2f} %"
            for name, value in self.engine.items()
            if name != "classes"
        )
        count = len(self.images) - len(self.errors)
        return f"Evaluation({shown} of {count} images, {len(self.errors)} errors)"
