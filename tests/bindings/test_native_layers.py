"""Networks chained by hand are those that the converter makes: weights, thresholds, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_layers import F32, SIGNS, U8, LayerError, Layers, window
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phonebit import Network
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Conv2D,
    Dequantize,
    Elementwise,
    MaxPool2D,
    Sign,
    Softmax,
)
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.passes.pipeline import run_pipeline
from phonebit.converter.writer import to_contents
from phonebit.format.bits import pack_signs
from phonebit.format.contents import FileContents
from phonebit.format.reader import constant_array, read_contents
from phonebit.format.records import NONE, DataType
from phonebit.format.writer import file_bytes
from support.engine_net import Net

Array = NDArray[Any]
INDICES = ("weights", "threshold", "flip_mask")
LIMIT = 300


def described(contents: FileContents) -> list[dict[str, Any]]:
    """All that ops compute, with constants in place of their indices and without names."""
    ops = []
    for record in contents.ops:
        op = {name: record[name].item() for name in record.dtype.names if name != "reserved"}
        del op["name_offset"], op["operand_begin"], op["step_begin"]
        begin = int(record["operand_begin"])
        op["operands"] = contents.operands[begin : begin + op["operand_count"]].tolist()
        for name in INDICES:
            op[name] = constant(contents, op[name])
        first = int(record["step_begin"])
        op["steps"] = [
            (
                step["kind"].item(), step["tensor"].item(), step["value_a"].item(),
                step["value_b"].item(), constant(contents, step["constant_a"].item()),
                constant(contents, step["constant_b"].item()),
            )
            for step in contents.steps[first : first + int(record["step_count"])]
        ]  # fmt: skip
        ops.append(op)
    tensors = [
        [int(tensor[name]) for name in ("dtype", "height", "width", "channels")]
        for tensor in contents.tensors
    ]
    return [{"tensors": tensors, "outputs": contents.outputs.tolist()}, *ops]


def constant(contents: FileContents, index: int) -> tuple[str, list[Any]] | None:
    if index == NONE:
        return None
    array = constant_array(contents, index)
    return str(array.dtype), array.ravel().tolist()


def check_same(layers: Layers, graph: Graph, folder: Path) -> None:
    """The file that ``layers`` saves, against what the converter makes of ``graph``."""
    mine = layers.save(folder / "mine.pbit")
    contents = to_contents(run_pipeline(graph).graph)
    assert described(read_contents(mine)) == described(contents)
    theirs = folder / "theirs.pbit"
    theirs.write_bytes(file_bytes(contents))
    info = Network.load(mine, device="cpu").inputs[0]
    rng = np.random.default_rng(7)
    shape = (2, *info.shape)
    image = (
        rng.integers(0, 256, shape, dtype=np.uint8)
        if info.dtype == "u8"
        else rng.standard_normal(shape, dtype=np.float32)
    )
    got, expected = (answers(path, image) for path in (mine, theirs))
    for ours, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, other)


def answers(path: Path, image: Array) -> list[Array]:
    result = Network.load(path, device="cpu", threads=1).forward(image)
    return list(result.values()) if isinstance(result, dict) else [np.asarray(result)]


def norm_arrays(channels: int, seed: int) -> dict[str, Array]:
    """Negative, zero and tiny gammas among others, and means that are ties."""
    rng = np.random.default_rng(seed)
    gamma = rng.standard_normal(channels).astype(np.float32)
    gamma[::7] = 0
    gamma[3::11] = 1e-30
    beta = rng.standard_normal(channels).astype(np.float32)
    beta[::5] = 0
    mean = rng.integers(-9, 10, channels).astype(np.float32)
    variance = (rng.random(channels) * 50).astype(np.float32)
    return {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}


def batch_norm(arrays: dict[str, Array], epsilon: float, arithmetic: int) -> BatchNorm:
    return BatchNorm(**arrays, epsilon=epsilon, arithmetic="torch" if arithmetic else "keras")


@pytest.mark.parametrize("arithmetic", [0, 1])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("cin", "cout", "groups", "kernel", "stride", "dilation", "pads", "pad_value"),
    [
        (31, 33, 1, 3, 1, 1, (1, 1, 1, 1), 0),
        (32, 31, 1, 3, 2, 1, (0, 1, 1, 0), -1),
        (33, 32, 1, 3, 1, 2, (2, 2, 2, 2), 1),
        (64, 6, 2, 1, 1, 1, (0, 0, 0, 0), 0),
        (66, 33, 3, 5, 3, 1, (2, 2, 1, 1), 1),
        (40, 40, 40, 3, 1, 1, (1, 1, 1, 1), -1),
        (1, 1, 1, 2, 1, 1, (0, 0, 0, 0), 0),
    ],
)
def test_binary_convolution_norm_and_sign(
    tmp_path: Path, cin: int, cout: int, groups: int, kernel: int, stride: int, dilation: int,
    pads: tuple[int, int, int, int], pad_value: int, packed: bool, arithmetic: int,
) -> None:  # fmt: skip
    net = Net("binary")
    weights = net.signs(cout, kernel, kernel, cin // groups).astype(np.float32)
    arrays, epsilon = norm_arrays(cout, cin), 1e-3
    place = Window((kernel,) * 2, (stride,) * 2, (dilation,) * 2, pads)
    bits = net.op("s", Sign(), net.input("x", (9, 11, cin)))
    conv = net.op("conv", Conv2D(weights, place, groups, float(pad_value)), bits)
    norm = net.op("norm", batch_norm(arrays, epsilon, arithmetic), conv)
    graph = net.done(net.op("b", Sign(), norm))
    with Layers() as layers:
        x = layers.input(F32, (9, 11, cin))
        signs = layers.pointwise(x, layers.epilogue(output=SIGNS))
        own = layers.packed(pack_signs(weights)) if packed else layers.signs(weights * 0.3)
        end = layers.epilogue(layers.norm(epsilon, arithmetic, **arrays), output=SIGNS)
        layers.output(
            layers.conv2d(
                signs, cout, window=window(kernel, stride, dilation, pads), weights=own,
                epilogue=end, groups=groups, pad_value=pad_value,
            )
        )  # fmt: skip
        check_same(layers, graph, tmp_path)


def test_bytes_pools_and_dense_layers_as_one_network(tmp_path: Path) -> None:
    net = Net("whole")
    first, dense = net.signs(32, 3, 3, 3), net.dyadic(10, 1, 1, 32)
    inner = net.signs(32, 3, 3, 32)
    norms = [norm_arrays(32, seed) for seed in (1, 2)]
    bias = net.dyadic(10)
    rational = Dequantize(
        np.full(3, 2 / 255, np.float32), np.full(3, -1, np.float32), (2, -255, 255)
    )
    same = Window((3, 3), pads=(1, 1, 1, 1))
    x = net.op("d", rational, net.input("x", (12, 12, 3), DataType.U8))
    c1 = net.op("c1", Conv2D(first.astype(np.float32), same), x)
    # Pool in front of the normalisation: channels that it turns round take the minimum of bits.
    p1 = net.op("p1", MaxPool2D(Window((2, 2), (2, 2))), c1)
    b1 = net.op("b1", Sign(), net.op("n1", batch_norm(norms[0], 1e-3, 0), p1))
    c2 = net.op("c2", Conv2D(inner.astype(np.float32), same, 1, 1.0), b1)
    n2 = net.op("n2", batch_norm(norms[1], 1e-3, 0), c2)
    a2 = net.op("a2", AveragePool2D(Window((6, 6))), n2)
    c3 = net.op("c3", Conv2D(dense, Window((1, 1)), bias=bias), a2)
    graph = net.done(net.op("softmax", Softmax(), c3))
    with Layers() as layers:
        scale = np.full(32, np.float32(1 / 255))
        end = layers.epilogue(layers.norm(1e-3, **norms[0]), scale=scale, output=SIGNS)
        x1 = layers.conv2d(
            layers.input(U8, (12, 12, 3)), 32, window=window(3, pads=(1, 1, 1, 1)),
            weights=layers.signs(first), epilogue=end, input_mul=2, input_add=-255,
        )  # fmt: skip
        x2 = layers.pool("max_pool", x1, window(2, 2), norms[0]["gamma"])
        x3 = layers.conv2d(
            x2, 32, window=window(3, pads=(1, 1, 1, 1)), weights=layers.signs(inner), pad_value=1,
            epilogue=layers.epilogue(layers.norm(1e-3, **norms[1])),
        )  # fmt: skip
        x4 = layers.pool("average_pool", x3, window(0))
        end = layers.epilogue(bias=bias)
        x5 = layers.dense(x4, 10, weights=layers.weights(dense), epilogue=end)
        layers.output(layers.softmax(x5))
        check_same(layers, graph, tmp_path)


NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1e-30, -1e-30, 1e-3, 1.0, -1.0, 0.1, -0.3, 7.5, 1e6, -1e6]),
    st.floats(-LIMIT, LIMIT, width=32),
)
VARIANCES = st.one_of(st.sampled_from([0.0, 1e-12, 1.0, 1e6]), st.floats(0, 1e4, width=32))


@settings(max_examples=40)
@given(st.data(), st.sampled_from([0, 1]), st.sampled_from(["bits", "f32", "u8"]))
def test_thresholds_of_any_normalisation_are_the_converters(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, arithmetic: int, operand: str
) -> None:
    channels, cin = 33, 21
    row = st.lists(NUMBERS, min_size=5, max_size=5)

    def resized(numbers: list[float], turn: int) -> Array:
        # Rows of different order, so that channels see many combinations of what is drawn.
        return np.roll(np.repeat(np.float32(numbers), 7)[:channels], turn * turn)

    arrays = {
        name: resized(data.draw(row), turn) for turn, name in enumerate(("gamma", "beta", "mean"))
    }
    variances = data.draw(st.lists(VARIANCES, min_size=5, max_size=5))
    arrays["variance"] = np.resize(np.float32(variances), channels)
    scale, bias = resized(data.draw(row), 4), resized(data.draw(row), 5)
    epsilon = data.draw(st.sampled_from([1e-3, 1e-5]))

    net = Net("thresholds")
    weights = net.signs(channels, 1, 1, cin).astype(np.float32)
    kind = DataType.U8 if operand == "u8" else DataType.F32
    value = net.input("x", (3, 4, cin), kind)
    if operand == "bits":
        value = net.op("s", Sign(), value)
    if operand == "u8":
        ones, zeros = np.ones(cin, np.float32), np.zeros(cin, np.float32)
        value = net.op("d", Dequantize(ones, zeros, (1, 0, 1)), value)
    conv = net.op("conv", Conv2D(weights, Window((1, 1))), value)
    scaled = net.op("scaled", Elementwise(Epilogue([ScaleBias(scale, bias)])), conv)
    norm = net.op("norm", batch_norm(arrays, epsilon, arithmetic), scaled)
    graph = net.done(net.op("b", Sign(), norm))
    with Layers() as layers:
        x = layers.input(U8 if operand == "u8" else F32, (3, 4, cin))
        if operand == "bits":
            x = layers.pointwise(x, layers.epilogue(output=SIGNS))
        own = layers.norm(epsilon, arithmetic, **arrays)
        end = layers.epilogue(own, scale=scale, bias=bias, output=SIGNS)
        layers.output(
            layers.conv2d(
                x, channels, window=window(1), weights=layers.signs(weights), epilogue=end
            )
        )
        check_same(layers, graph, tmp_path_factory.mktemp("thresholds"))


@pytest.mark.parametrize("name", ["gamma", "beta", "mean", "variance"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_name_and_channel(name: str, bad: float) -> None:
    arrays = norm_arrays(8, 3)
    arrays[name][5] = bad
    with Layers() as layers:
        x = layers.input(F32, (2, 2, 8))
        end = layers.epilogue(layers.norm(1e-3, **arrays), output=SIGNS)
        with pytest.raises(LayerError, match=rf"'pointwise_1': {name} of channel 5 is .*finite"):
            layers.pointwise(x, end)


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "net.pbit"
    path.write_bytes(b"precious")
    with Layers() as layers:
        x = layers.input(F32, (2, 2, 8))
        with pytest.raises(LayerError, match="no output"):
            layers.save(path)
        layers.output(layers.pointwise(x, layers.epilogue(output=SIGNS)))
        with pytest.raises(LayerError, match="cannot be written"):
            layers.save(tmp_path / "absent" / "net.pbit")
        assert path.read_bytes() == b"precious"
        layers.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["net.pbit"]
    assert len(Network.load(path, device="cpu").outputs) == 1
