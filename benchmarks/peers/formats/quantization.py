"""int8 forms of a float ONNX network, by the tools of the engines themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Pictures = Iterator[NDArray[np.float32]]
"""Each (1, H, W, 3)."""


def quantize_onnx(source: Path, target: Path, pictures: Pictures) -> None:
    """Writes ONNX Runtime's static quantization of ``source``: QDQ, weights per channel."""
    import onnx
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    name = onnx.load(source, load_external_data=False).graph.input[0].name

    class Reader(CalibrationDataReader):
        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            picture = next(pictures, None)
            return None if picture is None else {name: _planes(picture)}

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(target),
            Reader(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


def quantize_openvino(source: Path, target: Path, pictures: Pictures) -> None:
    """Writes NNCF's post-training quantization of ``source`` as TARGET.xml and .bin."""
    import nncf
    import openvino

    planes = [_planes(picture) for picture in pictures]
    model = openvino.Core().read_model(source)
    model.reshape(list(planes[0].shape))
    quantized = nncf.quantize(model, nncf.Dataset(planes), subset_size=len(planes))
    openvino.save_model(quantized, target, compress_to_fp16=False)


def _planes(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """(1, H, W, 3) as (1, 3, H, W)."""
    return np.ascontiguousarray(picture.transpose(0, 3, 1, 2))
