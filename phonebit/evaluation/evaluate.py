"""The evaluation itself: a file, and its source network if wanted, over a data set."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.detection import Limits
from phonebit.devices.runtime import usable_cores
from phonebit.errors import PhoneBitWarning
from phonebit.evaluation.annotations import read_detection
from phonebit.evaluation.classes import ClassNames
from phonebit.evaluation.reading import Read, read_ahead
from phonebit.evaluation.result import Evaluation, ImageResult, SourceResult
from phonebit.evaluation.samples import Dataset, read_classification
from phonebit.evaluation.scores import ClassificationScorer, DetectionScorer, Scorer, class_text
from phonebit.floating_point import rounds_by_default
from phonebit.images.image_files import evenly_spread, image_warnings
from phonebit.network import Network
from phonebit.network.tasks import check_classifier, check_detector
from phonebit.verification.source import check_belonging, open_source, source_inputs, traced_as
from phonebit.verification.source_trace import Source

if TYPE_CHECKING:
    from phonebit.converter.importers.sources import ImportOptions
    from phonebit.images.preprocessing import Preprocessing

PathLike = str | os.PathLike[str]
Array = NDArray[Any]
BATCH: Final = 16
LIMITS: Final = Limits(score=0.005)
"""Average precision needs the boxes of low scores, too."""


@rounds_by_default
def evaluate(
    file: PathLike | Network,
    data: PathLike,
    *,
    source: PathLike | Any | None = None,
    options: ImportOptions | None = None,
    images: PathLike | None = None,
    preprocessing: Preprocessing | None = None,
    limits: Limits | None = None,
    samples: int | None = None,
    workers: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure accuracy, or the mean average precision of a detector, on a data set.

    An image that cannot be read has an entry with its error, and no metric counts it.

    Args:
        file: the ``.pbit`` file, or a network loaded from it.
        data: for a classifier a folder with a folder per class, a CSV file of lines "image,class",
            or an ``.npz`` file of inputs and classes; for a detector annotations of PASCAL VOC (a
            folder of XML files, or a list of ``ImageSets``) or of COCO (JSON). Classes are matched
            with the file's labels.
        source: the checkpoint or live model that the file was converted from, evaluated next to it.
        options: what the source leaves open, as for the conversion.
        images: the folder of COCO's images; None: that of the JSON file.
        preprocessing: what images become; None: the file's own rule.
        limits: which boxes of a detector count; None: a score of 0.005, an overlap of 0.45.
        samples: how many images, evenly spread over the data set; None: all.
        workers: threads that read images; 0: one per usable core.
        progress: called with a text before each step.

    Returns:
        Metrics of the file and of the source, and an entry per image.

    Raises:
        InputError: if the file is neither classifier nor detector, the data set cannot be read, or
            its classes are not the file's.
        ModelFormatError: if the file is not sound.
        ConversionError: if the source cannot be imported.
        VerificationError: if file and source do not belong together.
        OSError: if a file cannot be read.
    """
    network = file if isinstance(file, Network) else Network.load(file)
    names, dataset = _read_dataset(network, Path(data), None if images is None else Path(images))
    if dataset.matched_by == "order":
        warnings.warn(
            f"{data}: none of its class names is a label of the file, so they are taken as the "
            "classes in alphabetical order; convert the network with --labels to be sure",
            PhoneBitWarning,
            stacklevel=3,
        )
    chosen = evenly_spread(dataset.samples, samples)
    say = progress or (lambda _text: None)
    origin = None
    if source is not None:
        say("reading the checkpoint")
        origin = open_source(source, True, traced_as(source, _options(options), network))
        check_belonging(origin, network)
    pair = _Pair(network, origin, names, limits or LIMITS)
    info = network.inputs[0]
    rule = preprocessing or network.preprocessing.get(info.name)
    with image_warnings():
        for batch in read_ahead(chosen, info, rule, BATCH, workers or usable_cores()):
            say(f"image {len(pair.rows)} of {len(chosen)}")
            pair.add(batch)
    return Evaluation(
        file=str(network.path),
        data=os.fspath(data),
        task="detect" if network.detection else "classify",
        matched_by=dataset.matched_by,
        engine=pair.engine.metrics(),
        source=pair.source_result(),
        images=pair.rows,
    )


def _options(options: ImportOptions | None) -> ImportOptions:
    from phonebit.converter.importers.sources import ImportOptions

    return options or ImportOptions()


def _read_dataset(network: Network, data: Path, images: Path | None) -> tuple[ClassNames, Dataset]:
    info, output = network.inputs[0], network.outputs[0]
    if network.detection:
        check_detector(network)
        count = network.detection[output.name].classes(output.shape[2])
        names = ClassNames(count, network.labels, str(network.path))
        return names, read_detection(data, names, images)
    check_classifier(network)
    names = ClassNames(output.shape[2], network.labels, str(network.path))
    return names, read_classification(data, info, names)


class _Pair:
    """The file, and its source if there is one, judged on the same images."""

    def __init__(
        self, network: Network, origin: Source | None, names: ClassNames, limits: Limits
    ) -> None:
        self._network = network
        self._origin = origin
        self._names = names
        self._limits = limits
        self.engine = self._scorer()
        self._source = self._scorer()
        self._same = 0
        self._difference = 0.0
        self.rows: list[ImageResult] = []

    def _scorer(self) -> Scorer:
        head = self._network.detection.get(self._network.outputs[0].name)
        if head is None:
            return ClassificationScorer(self._names)
        return DetectionScorer(self._names, head, self._limits)

    def add(self, batch: Sequence[Read]) -> None:
        """Run both on a batch and judge what they say."""
        read = [(one.sample, one.image) for one in batch if one.image is not None]
        ours: Sequence[Array] = []
        theirs: Sequence[Array] = []
        if read:
            ours, theirs = self._outputs(np.stack([image.array for _, image in read]))
        results = iter(zip(read, ours, theirs or ours, strict=True))
        for one in batch:
            truth = class_text(one.sample.truth, self._names)
            if one.image is None:
                self.rows.append(ImageResult(one.sample.name, truth, error=one.error))
                continue
            (sample, image), our, their = next(results)
            found = self.engine.add(our, sample.truth, image.placement)
            other = None
            if self._origin is not None:
                other = self._source.add(their, sample.truth, image.placement)
                self._same += found == other
            self.rows.append(ImageResult(sample.name, truth, found, other))

    def _outputs(self, images: Array) -> tuple[Sequence[Array], Sequence[Array]]:
        """Of the file and of the source, (height, width, channels) each."""
        info = self._network.outputs[0]
        inputs = {self._network.inputs[0].name: images}
        ours = self._network.forward(inputs)[info.name].reshape(-1, *info.shape)
        if self._origin is None:
            return list(ours), []
        values = self._origin.outputs(source_inputs(self._origin.graph, self._network, inputs))
        theirs = values[info.name].reshape(-1, *info.shape)
        self._difference = max(self._difference, float(np.abs(ours - theirs).max()))
        return list(ours), list(theirs)

    def source_result(self) -> SourceResult | None:
        """What the report says of the source."""
        if self._origin is None:
            return None
        origin = self._origin
        return SourceResult(
            name=origin.name,
            computed_by=origin.trained_with if origin.framework else "interpreter",
            reason=origin.reason,
            metrics=self._source.metrics(),
            max_abs_difference=self._difference,
            same=self._same,
        )
