"""A network as a function from columns to columns, as Ray Data's ``map_batches`` calls it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.detection import Limits, detect
from phonebit.devices.loading import Precision
from phonebit.errors import InputError
from phonebit.images.fitting import FittedImage
from phonebit.images.image_files import image_warnings, rule_for_levels
from phonebit.images.preprocessing import Preprocessing
from phonebit.images.reading import read_image
from phonebit.network import Network
from phonebit.network.tasks import check_classifier, check_detector, class_probabilities, label_of

Array = NDArray[Any]
Columns = dict[str, Array]
CLASSIFIER_COLUMNS: Final = ("class_index", "class_name", "probability", "error")
DETECTOR_COLUMNS: Final = ("detections", "error")


class BatchPredictor:
    """Labels or boxes for columns of images; loads the network once.

    An image that cannot be read is a row with its error: ``class_index`` is -1, ``class_name``
    empty and ``probability`` NaN, or ``detections`` are empty.

    Example::

        dataset.map_batches(
            phonebit.batch.BatchPredictor,
            fn_constructor_args=["model.pbit"],
            batch_size=64, num_cpus=1, concurrency=2,
        )
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        column: str = "image",
        *,
        device: str = "auto",
        threads: int = 0,
        precision: Precision = "exact",
        preprocessing: Preprocessing | None = None,
        limits: Limits | None = None,
        max_memory_bytes: int = 0,
        max_work: float = 0.0,
    ) -> None:
        """Load the network.

        Args:
            model: the ``.pbit`` file: its path, or its bytes where no path is everywhere the same.
            column: the images. Each is a path, the bytes of an image file, uint8 levels of any
                size, or float32 values as the input reads them.
            device: as for ``Network.load``; "auto" in a Ray actor is the GPU if the actor has a
                share of one, else the CPU.
            threads: that decode and compute; 0: the actor's CPUs, elsewhere one per usable core.
            precision: as for ``Network.load``.
            preprocessing: what images become; None: the file's own rule.
            limits: which boxes of a detector count; None: a score of 0.3, an overlap of 0.45.
            max_memory_bytes: as for ``Network.load``.
            max_work: as for ``Network.load``.

        Raises:
            InputError: if the network is neither classifier nor detector.
            ModelFormatError: if the file is not sound.
            DeviceError: if there is no such device.
            OSError: if the file cannot be read.
        """
        resources = assigned_resources()
        if device == "auto" and resources:
            device = "gpu" if resources.get("GPU") else "cpu"
        self.network = _load(
            model,
            device=device,
            threads=threads or int(resources.get("CPU", 0)) or (1 if resources else 0),
            precision=precision,
            max_memory_bytes=max_memory_bytes,
            max_work=max_work,
        )
        self.column = column
        check = check_detector if self.network.detection else check_classifier
        check(self.network)
        self._limits = limits
        info = self.network.inputs[0]
        rule = preprocessing or self.network.preprocessing.get(info.name)
        self.rule = rule if rule or info.dtype != "u8" else rule_for_levels(rule, info)

    @property
    def result_columns(self) -> Sequence[str]:
        """The columns that it adds."""
        return DETECTOR_COLUMNS if self.network.detection else CLASSIFIER_COLUMNS

    def __call__(self, batch: Mapping[str, Array]) -> Columns:
        """Label the images of a batch.

        Args:
            batch: columns of one length, read only; all are kept but images that are no paths.

        Returns:
            These, and for a classifier ``class_index`` (int64), ``class_name`` and ``probability``
            of the best class; for a detector ``detections``, a list per image of dicts with index,
            label, score and box (left, top, right, bottom in pixels); and ``error``.

        Raises:
            InputError: if the column is missing, a column has the name of a result, or there are
                levels and no rule for them.
            DeviceError: if the device fails.
        """
        self.check_columns(batch)
        return self.rows(batch, self._read(list(batch[self.column])))

    def rows(self, batch: Mapping[str, Array], found: Sequence[FittedImage | str]) -> Columns:
        """The results of a batch from what was read of it.

        Args:
            batch: as for a call.
            found: for each row an image that fits the network, or its error.

        Raises:
            DeviceError: if the device fails.
        """
        images = [one for one in found if not isinstance(one, str)]
        outputs: Sequence[Array] = []
        if images:
            info = self.network.outputs[0]
            results = self.network.forward(np.stack([image.array for image in images]))
            outputs = list(np.asarray(results).reshape(-1, *info.shape))
        good = np.array([not isinstance(one, str) for one in found], np.bool_)
        columns = dict(batch)
        if not all(isinstance(image, str) for image in batch[self.column]):
            del columns[self.column]
        if self.network.detection:
            columns["detections"] = self._detections(good, outputs, images)
        else:
            columns |= self._classes(good, outputs)
        columns["error"] = _texts(one if isinstance(one, str) else "" for one in found)
        return columns

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse columns of which none is the images, or one has the name of a result.

        Raises:
            InputError: if it is so.
        """
        names = list(names)
        if self.column not in names:
            raise InputError(f"no column '{self.column}'", got=", ".join(names))
        if twice := set(names).intersection(self.result_columns):
            raise InputError(
                f"a column is called '{min(twice)}' as a column of results is",
                hint="rename it first: dataset.rename_columns",
            )

    def _read(self, images: Sequence[Any]) -> list[FittedImage | str]:
        info, rule = self.network.inputs[0], self.rule
        if rule is None and any(not _is_values(image) for image in images):
            rule = rule_for_levels(rule, info)  # says that there is none
        with image_warnings():
            if self.network.threads == 1:
                return [read_image(image, info, rule) for image in images]
            with ThreadPoolExecutor(self.network.threads, "phonebit-batch") as pool:
                return list(pool.map(lambda image: read_image(image, info, rule), images))

    def _classes(self, good: NDArray[np.bool_], outputs: Sequence[Array]) -> Columns:
        index = np.full(len(good), -1, np.int64)
        probability = np.full(len(good), np.nan)
        if outputs:
            scores = np.stack(outputs).reshape(len(outputs), -1)
            index[good] = scores.argmax(axis=1)
            probability[good] = class_probabilities(self.network, scores).max(axis=1)
        labels = self.network.labels
        names = _texts("" if i < 0 else label_of(labels, i) for i in index.tolist())
        return {"class_index": index, "class_name": names, "probability": probability}

    def _detections(
        self, good: NDArray[np.bool_], outputs: Sequence[Array], images: Sequence[FittedImage]
    ) -> Array:
        head = self.network.detection[self.network.outputs[0].name]
        pairs = iter(zip(outputs, images, strict=True))
        column = np.empty(len(good), np.object_)
        for row in range(len(good)):
            column[row] = []
            if good[row]:
                output, image = next(pairs)
                boxes = detect(output, head, image.placement, self.network.labels, self._limits)
                column[row] = [box.to_dict() for box in boxes]
        return column


def assigned_resources() -> Mapping[str, float]:
    """CPUs and shares of GPUs of the Ray actor that this is; empty elsewhere."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return {}
    context = ray.get_runtime_context()
    return dict(context.get_assigned_resources()) if context.get_actor_id() else {}


def _load(model: str | os.PathLike[str] | bytes, **options: Any) -> Network:
    if not isinstance(model, bytes):
        return Network.load(model, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pbit"
        path.write_bytes(model)
        return Network.load(path, **options)


def _is_values(image: Any) -> bool:
    return isinstance(image, np.ndarray) and image.dtype != np.uint8


def _texts(texts: Iterable[str]) -> Array:
    """Python's strings: fixed-width ones of NumPy would differ in dtype from batch to batch."""
    return np.array(list(texts), np.object_)
