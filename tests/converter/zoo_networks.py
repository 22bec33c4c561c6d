"""The networks of larq-zoo with made-up weights, for tests with TensorFlow."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.importer import import_larq
from support import larq_networks

SIZES: Final = {
    "BiRealNet": 64,
    "BinaryAlexNet": 64,
    "BinaryDenseNet28": 64,
    "BinaryDenseNet37": 64,
    "BinaryDenseNet37Dilated": 64,
    "BinaryDenseNet45": 64,
    "BinaryResNetE18": 64,
    "DoReFaNet": 64,
    "MeliusNet22": 64,
    "QuickNet": 64,
    "QuickNetLarge": 64,
    "QuickNetSmall": 64,
    "RealToBinaryNet": 64,
    "XNORNet": 217,
}
"""Every architecture of larq-zoo, and a small input that it works with."""

LAMBDAS: Final = ("MeliusNet22", "RealToBinaryNet")
"""Those with Lambda layers."""

CLASSES: Final = 10
IMAGES: Final = 2


@cache
def _built(name: str, **options: Any) -> Any:
    """A network, built once a session, which takes Keras seconds; its weights are set each time."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import tensorflow as tf

    # No layer of theirs needs AutoGraph, which rewrites the text of each.
    return tf.autograph.experimental.do_not_convert(_build)(name, **options)


def _build(name: str, **options: Any) -> Any:
    import larq_zoo

    package = larq_zoo.sota if name.startswith("Quick") else larq_zoo.literature
    shape = (SIZES[name], SIZES[name], 3)
    if not options:
        return getattr(package, name)(input_shape=shape, weights=None, num_classes=CLASSES)
    from larq_zoo.literature.dorefanet import DoReFaNetFactory

    return DoReFaNetFactory(input_shape=shape, num_classes=CLASSES, **options).build()


class MadeUp:
    """A network with made-up numbers, and images (IMAGES, H, W, 3) for it."""

    def __init__(self, model: Any, images: np.ndarray) -> None:
        self._model, self._weights, self._images = model, model.get_weights(), images
        self.graph = import_larq(model)

    def ready(self) -> tuple[Any, np.ndarray]:
        """The Keras model and the images; the model is others', too, who set other numbers."""
        self._model.set_weights(self._weights)
        return self._model, self._images


def exact(name: str) -> MadeUp:
    """A network in which float32 arithmetic is exact up to the logits, and images for it.

    Besides dyadic weights and statistics: scales of quantized kernels are powers of two, gates of
    squeeze-and-excite are sigmoid(0) = 1/2, and DoReFaNet quantizes to one bit (thirds are no
    exactly representable fractions).
    """
    model = _built(name, **({"activations_k_bit": 1} if name == "DoReFaNet" else {}))
    images = larq_networks.integer_images(IMAGES, SIZES[name], seed=5)
    larq_networks.make_dyadic(model, images[:1])
    rng = np.random.default_rng(11)
    for layer in model.layers:
        kernel_quantizer = getattr(layer, "kernel_quantizer", None)
        if getattr(kernel_quantizer, "__name__", "") in (
            "xnor_weight_scale",
            "magnitude_aware_sign_unclipped",
        ):
            layer.set_weights([rng.choice([-0.5, 0.5], w.shape) for w in layer.get_weights()])
        if layer.name.endswith("scaling_dense_expand"):
            layer.set_weights([0 * w for w in layer.get_weights()])
    return MadeUp(model, images)


def random(name: str) -> MadeUp:
    """A network with random weights and statistics, and images for it."""
    model = _built(name)
    images = larq_networks.float_images(IMAGES, SIZES[name], seed=7)
    # Calibrated on several: maps of one pixel would have no deviation on one image.
    larq_networks.make_random(model, larq_networks.float_images(4, SIZES[name]))
    return MadeUp(model, images)


def without_softmax(tf: Any, model: Any) -> Any:
    """The same network up to its logits."""
    return tf.keras.Model(model.input, model.layers[-1].input, name=model.name)
