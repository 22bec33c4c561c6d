"""Writes one file of one network.

    python -m benchmarks.peers.formats.export KIND NETWORK FOLDER

Run by the environment that ``harness/catalogue.py`` names for the kind. The frameworks are imported
by the functions that use them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import phonebit
from benchmarks.peers.harness.catalogue import KINDS, SUBJECTS, Subject, subject
from benchmarks.peers.worker import planes
from phonebit.converter import interpreter
from phonebit.converter.importers.sources import ImportOptions, import_source
from phonebit.converter.ir import Graph
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.models.networks import NETWORKS, build
from phonebit.models.networks.builder import Form

FRAMEWORK_SETTINGS: Final = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
CALIBRATION_IMAGES: Final = 4
"""Ranges of activations only: nothing is trained, and accuracy is not measured here."""
CALIBRATION_SEED: Final = 100
IMAGE_RANGE: Final = (-1.0, 1.0)
"""What levels 0 and 255 stand for."""


@dataclass(frozen=True)
class Job:
    """What is written where."""

    subject: Subject
    folder: Path
    float_weights: FloatWeights

    def path(self, kind: str) -> Path:
        """The file of a kind."""
        return self.folder / KINDS[kind].file

    def graph(self, form: Form) -> Graph:
        """The binary network or the float twin."""
        if form == "binary" and self.subject.zoo is not None:
            return import_source(self.path("zoo"), ImportOptions())
        assert self.subject.definition is not None, f"a network without a {form} definition"
        return NETWORKS[self.subject.definition](form)

    def images(self, count: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Smooth random images (count, size, size, 3) as levels, and as the values -1..1."""
        from support.larq_networks import float_images

        reals = float_images(count, self.subject.size, seed)
        levels = np.clip(np.rint(reals * 48 + 128), 0, 255).astype(np.uint8)
        return levels, ((levels * np.float32(2) - np.float32(255)) / np.float32(255))

    def calibration(self) -> Iterator[NDArray[np.float32]]:
        """Images (1, size, size, 3) other than the measured one."""
        for image in self.images(CALIBRATION_IMAGES, CALIBRATION_SEED)[1]:
            yield image[None]


def write_images(job: Job) -> None:
    """The measured image: PhoneBit may read levels, the others read float values."""
    levels, reals = job.images(1)
    np.save(job.folder / "image_u8.npy", levels)
    np.save(job.path("images"), reals)


def write_reference(job: Job) -> None:
    """What the float twin computes, by the converter's reference interpreter."""
    graph = job.graph("float")
    image = np.load(job.path("images"))
    result = interpreter.run(graph, {graph.inputs[0]: image})
    np.save(job.path("reference"), result[graph.outputs[0]])


def write_binary_reference(job: Job) -> None:
    """What PhoneBit's CPU backend computes."""
    network = phonebit.Network.load(job.path("pbit"), device="cpu")
    image = np.load(job.folder / "image_u8.npy")  # as on a GPU
    np.save(job.path("binary_reference"), network.forward(image))


def write_zoo(job: Job) -> None:
    """The network as larq-zoo builds it, with made-up weights."""
    from support import larq_networks

    assert job.subject.zoo is not None
    model = larq_networks.build(job.subject.zoo, dyadic=False, size=job.subject.size)
    model.save(job.path("zoo"), include_optimizer=False)


def write_pbit(job: Job, kind: str = "pbit", float_weights: FloatWeights | None = None) -> None:
    """PhoneBit's file; weights of full-precision layers as given, else as asked for."""
    if job.subject.zoo is not None:
        phonebit.convert(
            job.path("zoo"),
            job.path(kind),
            check=False,
            float_weights=float_weights or "f32",
            input_dtype="u8" if job.subject.reads_levels else "f32",
            input_range=IMAGE_RANGE if job.subject.reads_levels else None,
        )
    else:
        build(job.subject.name, job.path(kind), float_weights=float_weights or job.float_weights)


write_pbit_f16 = partial(write_pbit, kind="pbit_f16", float_weights="f16")
write_pbit_int8 = partial(write_pbit, kind="pbit_int8", float_weights="i8")


def write_larq(job: Job) -> None:
    """Larq Compute Engine's file, by its own converter."""
    import larq_compute_engine

    from benchmarks.peers.formats.keras_format import to_keras

    if job.subject.zoo is not None:
        from support import larq_networks

        # Not load_model: initializers of some of the zoo's networks have no name in the file.
        model = larq_networks.untrained(job.subject.zoo, job.subject.size)
        model.load_weights(job.path("zoo"))
    else:
        model = to_keras(job.graph("binary"))
    job.path("larq").write_bytes(larq_compute_engine.convert_keras_model(model))


def write_onnx_int8(job: Job) -> None:
    """ONNX Runtime's static quantization: QDQ, uint8 activations, int8 weights per channel."""
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source = job.path("onnx")
    name = onnx.load(source, load_external_data=False).graph.input[0].name
    images = job.calibration()

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            image = next(images, None)
            return None if image is None else {name: planes(image)}

    with tempfile.TemporaryDirectory(dir=job.folder) as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(prepared),
            str(job.path("onnx_int8")),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )


def write_openvino_int8(job: Job) -> None:
    """NNCF's post-training quantization."""
    import nncf
    import openvino

    images = [planes(image) for image in job.calibration()]
    model = openvino.Core().read_model(job.path("onnx"))
    model.reshape(list(images[0].shape))
    quantized = nncf.quantize(model, nncf.Dataset(images), subset_size=len(images))
    openvino.save_model(quantized, job.path("openvino_int8"), compress_to_fp16=False)


def write_tflite(job: Job, in_8_bits: bool = False) -> None:
    """The twin for LiteRT; with int8 throughout, its input and output are int8, too."""
    import tensorflow as tf

    from benchmarks.peers.formats.keras_format import to_keras
    from benchmarks.peers.formats.source_graphs import fold_batch_norm

    model = to_keras(fold_batch_norm(job.graph("float")), mirrored=in_8_bits)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if in_8_bits:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([image] for image in job.calibration())
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    job.path("tflite_int8" if in_8_bits else "tflite").write_bytes(converter.convert())


write_tflite_int8 = partial(write_tflite, in_8_bits=True)


def write_ncnn(job: Job) -> None:
    """The twin for ncnn: pnnx fuses what can be fused and stores weights as half floats."""
    import pnnx

    with tempfile.TemporaryDirectory(dir=job.folder) as folder:
        source = Path(folder) / "float.pt"  # pnnx writes more files than these next to it
        source.symlink_to(job.path("torchscript").resolve())
        subprocess.run([pnnx.EXEC_PATH, source], check=True)
        for file in (job.path("ncnn"), job.path("ncnn").with_suffix(".bin")):
            (source.parent / file.name).replace(file)


SAVERS: Final[dict[str, tuple[str, Form]]] = {
    "openvino_binary": ("openvino_binary.save_openvino", "binary"),
    "onnx": ("torch_format.save_onnx", "float"),
    "torchscript": ("torch_format.save_torchscript", "float"),
    "torch_module": ("torch_format.save_module", "float"),
}
"""Kinds that one function makes of a graph, by module and name, and of which form."""


def write(job: Job, kind: str) -> None:
    """Writes the file of a kind."""
    if kind not in SAVERS:
        globals()[f"write_{kind}"](job)
        return
    path, form = SAVERS[kind]
    module, _, function = path.partition(".")
    save = getattr(import_module(f"benchmarks.peers.formats.{module}"), function)
    save(job.graph(form), job.path(kind))


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("network", choices=[entry.name for entry in SUBJECTS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--float-weights", default="f16", choices=("f16", "f32"))
    parser.add_argument("--no-zoo", action="store_true", help="the binary network's definition")
    options = parser.parse_args()
    os.environ |= FRAMEWORK_SETTINGS
    chosen = subject(options.network)
    chosen = replace(chosen, zoo=None) if options.no_zoo else chosen
    job = Job(chosen, options.folder, options.float_weights)
    write(job, options.kind)


if __name__ == "__main__":
    main()
