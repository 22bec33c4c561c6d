"""Which networks are measured, with which engines, from which files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Environment = Literal["phonebit", "peers", "tensorflow"]
"""Each has its own Python, since the frameworks' requirements exclude each other."""
Precision = Literal["binary", "binary, int8", "f32", "bf16", "int8", "exact", "f16"]
"""On the CPU "binary" has real layers in f32 (of PhoneBit's, the last is stored as halves) or int8;
on a GPU PhoneBit is "exact", or "f16" outside of binary layers."""


@dataclass(frozen=True)
class Subject:
    """A network: the binary one and its float twin.

    Attributes:
        name: in results and as a folder of files.
        title: for people.
        definition: in ``models/networks``; the float twin, and the binary network where no ``zoo``
            is given. None: there is no twin.
        zoo: in ``tests/support/larq_networks.py``: the binary network as larq-zoo builds it.
        size: height and width of its input.
    """

    name: str
    title: str
    definition: str | None
    zoo: str | None
    size: int


SUBJECTS: Final = (
    Subject("alexnet", "AlexNet", "alexnet", None, 227),
    Subject("yolov2_tiny", "YOLOv2-Tiny", "yolov2_tiny", None, 416),
    Subject("vgg16", "VGG16", "vgg16", None, 224),
    Subject("birealnet18", "Bi-Real-18", "birealnet18", "birealnet", 224),
    Subject("quicknet", "QuickNet", "quicknet", "quicknet", 224),
    Subject("binary_alexnet", "BinaryAlexNet", None, "binary_alexnet", 224),
)


@dataclass(frozen=True)
class FileKind:
    """One file of a network, written by ``formats/export.py KIND`` in an environment.

    Attributes:
        name: the kind.
        file: its name in the network's folder.
        environment: whose Python writes it.
        needs: kinds that must be there before.
        companion: a second file that belongs to it (OpenVINO's weights).
    """

    name: str
    file: str
    environment: Environment
    needs: tuple[str, ...] = ()
    companion: str | None = None


KINDS: Final = {
    kind.name: kind
    for kind in (
        FileKind("zoo", "zoo.h5", "tensorflow"),
        FileKind("pictures", "picture_f32.npy", "phonebit", companion="picture_u8.npy"),
        FileKind("pbit", "network.pbit", "phonebit"),
        FileKind("pbit_f16", "network_f16.pbit", "phonebit"),
        FileKind("pbit_int8", "network_int8.pbit", "phonebit"),
        FileKind("binary_reference", "binary_reference.npy", "phonebit", ("pictures", "pbit")),
        FileKind("larq", "larq.tflite", "tensorflow"),
        FileKind("openvino_binary", "binary.xml", "peers", companion="binary.bin"),
        FileKind("onnx", "float.onnx", "phonebit"),
        FileKind("onnx_int8", "int8.onnx", "peers", ("onnx",)),
        FileKind("openvino_int8", "int8.xml", "peers", ("onnx",), "int8.bin"),
        FileKind("tflite", "float.tflite", "tensorflow"),
        FileKind("tflite_int8", "int8.tflite", "tensorflow"),
        FileKind("torchscript", "float.pt", "phonebit"),
        FileKind("torch_module", "float_module.pt", "phonebit"),
        FileKind("ncnn", "float.ncnn.param", "phonebit", ("torchscript",), "float.ncnn.bin"),
        FileKind("reference", "float_reference.npy", "phonebit", ("pictures",)),
    )
}


STREAMS: Final = "streams"
"""Variant of OpenVINO's worker."""


@dataclass(frozen=True)
class Contender:
    """An engine in one precision.

    Attributes:
        engine: name in the results; its worker is ``workers/<worker>_worker.py``.
        title: for people.
        worker: see there.
        precision: of the network.
        environment: whose Python runs the worker.
        kind: of the file that it loads.
        variant: for the worker, where an engine has several.
        device: that the engine is asked for.
        is_tuned: PhoneBit after ``phonebit tune``.
    """

    engine: str
    title: str
    worker: str
    precision: Precision
    environment: Environment
    kind: str
    variant: str = ""
    device: str = "cpu"
    is_tuned: bool = False

    @property
    def key(self) -> str:
        """Distinct for every contender."""
        return f"{self.engine} {self.precision}"

    @property
    def is_binary(self) -> bool:
        """Whether it runs the binary network, not the twin."""
        return self.kind in ("pbit", "pbit_f16", "pbit_int8", "larq", "openvino_binary")

    def runs(self, batch: int) -> bool:
        """Whether it suits batches of this size: streams compute pictures side by side."""
        return batch > 1 or self.variant != STREAMS


CONTENDERS: Final = (
    Contender("phonebit", "PhoneBit", "phonebit", "binary", "phonebit", "pbit"),
    Contender("phonebit", "PhoneBit", "phonebit", "binary, int8", "phonebit", "pbit_int8", "fast"),
    Contender("larq", "Larq Compute Engine", "larq", "binary", "tensorflow", "larq"),
    Contender(
        "larq_indirect",
        "Larq Compute Engine, indirect BGEMM",
        "larq",
        "binary",
        "tensorflow",
        "larq",
        "indirect",
    ),
    Contender("openvino", "OpenVINO", "openvino", "binary", "peers", "openvino_binary"),
    Contender(
        *("openvino_streams", "OpenVINO, throughput mode", "openvino", "binary"),
        *("peers", "openvino_binary", STREAMS),
    ),
    Contender("onnxruntime", "ONNX Runtime", "onnxruntime", "f32", "peers", "onnx"),
    Contender("openvino", "OpenVINO", "openvino", "f32", "peers", "onnx"),
    Contender("litert", "LiteRT, XNNPACK", "litert", "f32", "peers", "tflite"),
    Contender("pytorch", "PyTorch", "torch", "f32", "phonebit", "torchscript"),
    Contender("openvino", "OpenVINO", "openvino", "bf16", "peers", "onnx"),
    Contender("onnxruntime", "ONNX Runtime", "onnxruntime", "int8", "peers", "onnx_int8"),
    Contender("openvino", "OpenVINO", "openvino", "int8", "peers", "openvino_int8"),
    Contender(
        *("openvino_streams", "OpenVINO, throughput mode", "openvino", "int8"),
        *("peers", "openvino_int8", STREAMS),
    ),
    Contender("litert", "LiteRT, XNNPACK", "litert", "int8", "peers", "tflite_int8"),
)
OURS: Final = CONTENDERS[0]

GPU_CONTENDERS: Final = (
    Contender("phonebit", "PhoneBit", "phonebit", "exact", "phonebit", "pbit", "exact", "gpu"),
    Contender(
        *("phonebit_tuned", "PhoneBit, tuned", "phonebit", "exact"),
        *("phonebit", "pbit", "exact", "gpu", True),
    ),
    Contender(
        *("phonebit_f16", "PhoneBit, float tensors and weights f16", "phonebit", "f16"),
        *("phonebit", "pbit_f16", "fast", "gpu"),
    ),
    Contender("ncnn", "ncnn, Vulkan f16", "ncnn", "f16", "phonebit", "ncnn", device="gpu"),
    Contender(
        *("litert", "LiteRT, WebGPU f16", "litert_gpu", "f16", "phonebit", "tflite"), device="gpu"
    ),
    Contender(
        *("torch", "PyTorch, cuDNN f16", "torch_gpu", "f16", "phonebit", "torch_module"),
        device="cuda:0",
    ),
)


def subject(name: str) -> Subject:
    """The network of this name."""
    return next(entry for entry in SUBJECTS if entry.name == name)


def contenders_for(entry: Subject) -> list[Contender]:
    """All that run the network or its twin, PhoneBit first."""
    return [each for each in CONTENDERS if each.is_binary or entry.definition is not None]


def kinds_for(entry: Subject, contenders: Iterable[Contender], *more: str) -> list[FileKind]:
    """Every file that these contenders need, and more, in an order in which they can be written."""
    wanted = ["zoo"] if entry.zoo is not None else []
    wanted += ["pictures", *(each.kind for each in contenders), *more]
    if entry.definition is not None:
        wanted.append("reference")
    ordered: list[str] = []
    for name in wanted:
        ordered += [need for need in (*KINDS[name].needs, name) if need not in ordered]
    return [KINDS[name] for name in ordered]
