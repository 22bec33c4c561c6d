"""Which engines are measured, with which form of a network, in which precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

NETWORKS: Final = ("alexnet", "yolov2_tiny", "vgg16", "birealnet18", "quicknet")
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Contender:
    """An engine in one precision.

    Attributes:
        key: in the results.
        title: for people.
        engine: its worker is ``<engine>_worker``.
        form: of the network: "binary", or "float" for its twin.
        precision: that it is asked for.
        device: that it is asked for.
        rehearsal: precision and device where there is no GPU and only the benchmark is tried.
        only_real: only for networks with real values between binary layers.
    """

    key: str
    title: str
    engine: str
    form: Literal["binary", "float"]
    precision: str
    device: str
    rehearsal: tuple[str, str]
    only_real: bool = False

    @property
    def module(self) -> str:
        """Its worker."""
        return f"benchmarks.peers.gpu.{self.engine}_worker"


CONTENDERS: Final = (
    Contender("phonebit", "PhoneBit", "phonebit", "binary", "exact", "gpu", ("exact", "gpu")),
    Contender(
        *("phonebit_f16", "PhoneBit, float tensors f16", "phonebit", "binary", "f16", "gpu"),
        rehearsal=("f16", "gpu"),
        only_real=True,
    ),
    Contender("ncnn", "ncnn, Vulkan f16", "ncnn", "float", "f16", "gpu", ("f16", "cpu")),
    Contender("litert", "LiteRT, WebGPU f16", "litert", "float", "f16", "gpu", ("f32", "cpu")),
    Contender("torch", "PyTorch, cuDNN f16", "torch", "float", "f16", "cuda", ("f32", "cpu")),
)
REFERENCE: Final = "phonebit"
"""To whose times ratios are."""
