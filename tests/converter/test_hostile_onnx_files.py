"""ONNX files that lie about sizes, places and order are one line of error, and nothing is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from phonebit.converter.convert import convert
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.errors import ConversionError, PhoneBitError
from support.onnx_models import halves, integers, model, single

MAP = (1, 4, 6, 8)


def conv() -> onnx.ModelProto:
    return single("Conv", MAP, halves(5, 4, 3, 3))


def huge_weight(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].dims[0] = 1 << 50


def negative_weight(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].dims[0] = -5


def short_weight(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].raw_data = made.graph.initializer[0].raw_data[:-4]


def short_list(made: onnx.ModelProto) -> None:
    tensor = TensorProto(name="c0", data_type=TensorProto.FLOAT, dims=[5, 4, 3, 3])
    tensor.float_data.extend([1.0, 2.0])
    made.graph.initializer[0].CopyFrom(tensor)


def text_weight(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].CopyFrom(
        TensorProto(name="c0", data_type=TensorProto.STRING, dims=[1], string_data=[b"x"])
    )


def nan_weight(made: onnx.ModelProto) -> None:
    weight = made.graph.initializer[0]
    weight.raw_data = b"\0\0\xc0\x7f" + weight.raw_data[4:]


def unknown_type(made: onnx.ModelProto) -> None:
    made.graph.initializer[0].data_type = 999


def two_weights(made: onnx.ModelProto) -> None:
    made.graph.initializer.append(made.graph.initializer[0])


def two_results(made: onnx.ModelProto) -> None:
    made.graph.node.append(made.graph.node[0])


def missing_weight(made: onnx.ModelProto) -> None:
    del made.graph.initializer[0]


def cycle(made: onnx.ModelProto) -> None:
    made.graph.node.insert(0, helper.make_node("Add", ["x", "y"], ["a"], name="loop"))
    made.graph.node[1].input[0] = "a"


def missing_output(made: onnx.ModelProto) -> None:
    made.graph.output[0].name = "nowhere"


def huge_input(made: onnx.ModelProto) -> None:
    for dim in made.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = 1 << 40


def negative_input(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -3


def text_input(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


def sparse(made: onnx.ModelProto) -> None:
    made.graph.sparse_initializer.add()


def no_nodes(made: onnx.ModelProto) -> None:
    del made.graph.node[:]


def no_opset(made: onnx.ModelProto) -> None:
    del made.opset_import[:]


def external(location: str) -> Callable[[onnx.ModelProto], None]:
    def change(made: onnx.ModelProto) -> None:
        tensor = made.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)

    return change


def many_axes(made: onnx.ModelProto) -> None:
    tensor = TensorProto(name="c0", data_type=TensorProto.FLOAT, dims=[1] * 204, raw_data=bytes(4))
    made.graph.initializer[0].CopyFrom(tensor)


def other_field(made: onnx.ModelProto) -> None:
    tensor = TensorProto(name="c0", data_type=TensorProto.FLOAT, dims=[5, 4, 3, 3])
    tensor.int64_data.extend([1] * 180)
    made.graph.initializer[0].CopyFrom(tensor)


def attribute(name: str, value: object) -> Callable[[onnx.ModelProto], None]:
    def change(made: onnx.ModelProto) -> None:
        made.graph.node[0].attribute.append(helper.make_attribute(name, value))

    return change


def opset(version: int) -> Callable[[onnx.ModelProto], None]:
    def change(made: onnx.ModelProto) -> None:
        made.opset_import[0].version = version

    return change


CHANGES: dict[str, tuple[Callable[[onnx.ModelProto], None], str]] = {
    "huge weight": (huge_weight, "c0: a tensor of impossible size"),
    "negative weight": (negative_weight, "c0: a tensor of impossible size"),
    "short weight": (short_weight, "c0: a tensor of shape .* with data of another size"),
    "short list": (short_list, r"c0: a tensor of shape .* \(expected 180 elements, got 2\)"),
    "text weight": (text_weight, "c0: a tensor of no numbers .*string"),
    "weight that is NaN": (nan_weight, "conv: Conv reads 'c0', which has NaN"),
    "unknown type": (unknown_type, "c0: a tensor of no numbers .*999"),
    "two weights": (two_weights, "'c0': a name is defined twice"),
    "two results": (two_results, "'y': a name is defined twice"),
    "missing weight": (missing_weight, "conv: reads 'c0', which nothing before it computes"),
    "cycle": (cycle, "loop: reads 'y', which nothing before it computes.*cycle"),
    "missing output": (missing_output, "'nowhere': an output that nothing computes"),
    "huge input": (huge_input, "input 'x' has an open or impossible shape"),
    "negative input": (negative_input, "input 'x' has an open or impossible shape"),
    "text input": (text_input, "input 'x' cannot be expressed .*string"),
    "sparse": (sparse, "has sparse tensors"),
    "no nodes": (no_nodes, "holds no graph"),
    "no opset": (no_opset, "which version of ONNX's operators"),
    "absolute path": (external("/etc/hostname"), "c0: its data is outside of the model's folder"),
    "parent folder": (external("../secret"), "c0: its data is outside of the model's folder"),
    "no place": (external(""), "c0: its data is outside of the model's folder"),
    "missing file": (external("weights"), "c0: its data file is missing"),
    "no name of a file": (external("a\0b"), "c0: its data lies where no file can be"),
    "long name": (external("a" * 5000), "c0: its data .*(no file can be|is missing)"),
    "many axes": (many_axes, "c0: a tensor of impossible size"),
    "data of another type": (other_field, r"c0: a tensor .* \(expected 180 elements, got 0\)"),
    "number for a list": (attribute("pads", 3), "conv: its attribute 'pads' is of another type"),
    "text for numbers": (attribute("strides", "ab"), r"'strides' .*\(expected ints, got string\)"),
    "tensor for a number": (
        attribute("group", numpy_helper.from_array(np.ones(3))),
        r"'group' is of another type \(expected int, got tensor\)",
    ),
    "negative opset": (opset(-5), r"impossible version .*ai\.onnx.*got -5"),
    "opset 0": (opset(0), "impossible version"),
    "huge opset": (opset(1 << 62), "impossible version"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_inconsistent_files_are_one_line_of_error(name: str, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    (tmp_path / "secret").write_bytes(bytes(720))
    folder = tmp_path / "models"
    folder.mkdir()
    made = conv()
    change(made)
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(ConversionError, match=message) as caught:
        import_onnx(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value).splitlines()) == 1


def test_links_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(720))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "weights").symlink_to(tmp_path / "secret")
    made = conv()
    external("weights")(made)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ConversionError, match="outside of the model's folder"):
        import_onnx(folder / "model.onnx")


def stored_outside(folder: Path, offsets: tuple[int, int], size: int) -> Path:
    """Two kernels in a file of their own."""
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["c"], name="first"),
        helper.make_node("Conv", ["c", "w"], ["y"], name="second"),
    ]
    kernels = {"v": halves(4, 4, 1, 1), "w": halves(4, 4, 1, 1, seed=8)}
    made = model(nodes, {"x": MAP}, constants=kernels)
    content = bytearray(size)
    for tensor, offset in zip(made.graph.initializer, offsets, strict=True):
        data = tensor.raw_data
        content[offset : offset + 64] = data
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "model.data"), ("offset", str(offset)), ("length", "64")):
            tensor.external_data.add(key=key, value=value)
    (folder / "model.data").write_bytes(bytes(content[:size]))
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_weights_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    graph = import_onnx(stored_outside(tmp_path, (0, 64), 128))
    weights = [node.op.weights for node in graph.nodes if node.inputs]
    expected = halves(4, 4, 1, 1, seed=8).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(weights[1], expected)


@pytest.mark.parametrize(
    ("offsets", "size", "message"),
    [
        ((0, 32), 128, "w: its data overlaps that of 'v'"),
        ((0, 0), 128, "w: its data overlaps that of 'v'"),
        ((0, 64), 100, "w: its data is cut off"),
    ],
)
def test_weights_that_overlap_or_are_cut_off(
    offsets: tuple[int, int], size: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConversionError, match=message):
        import_onnx(stored_outside(tmp_path, offsets, size))


GROWING: dict[str, onnx.ModelProto] = {
    "expand": single("Expand", (1, 4), integers(1 << 40, 4)),
    "tile": single("Tile", (1, 4), integers(1, 1 << 40)),
    "resize": single("Resize", MAP, None, np.array([1, 1, 1e9, 1e9], np.float32), mode="nearest"),
    "pad": single("Pad", (1, 4), integers(0, 0, 0, 1 << 40)),
    "reshape": single("Reshape", MAP, integers(1 << 40, -1)),
    "gather": single("Gather", MAP, integers(99)),
    "nothing": single("Resize", MAP, None, np.array([1, 1, np.nan, 1], np.float32)),
    "window": single("MaxPool", MAP, kernel_shape=[1 << 40, 1]),
    "strides": single("Conv", MAP, halves(5, 4, 3, 3), strides=[0, 1]),
    "groups": single("Conv", MAP, halves(5, 4, 3, 3), group=-1),
    "axis": single("Concat", MAP, axis=99),
    "blocks": single("DepthToSpace", MAP, blocksize=-1),
}


@pytest.mark.parametrize("name", GROWING)
def test_sizes_that_operators_ask_for_are_bounded(name: str) -> None:
    with pytest.raises(ConversionError):
        import_onnx(GROWING[name])


def test_constants_grow_within_bounds_only() -> None:
    """An outer sum, and a constant of a huge shape."""
    nodes = [
        helper.make_node("ConstantOfShape", ["sizes"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    constants = {"sizes": integers(1 << 20, 1 << 20)}
    with pytest.raises(ConversionError, match="has a result of shape"):
        import_onnx(model(nodes, {"x": (1, 4)}, constants=constants))
    nodes = [
        helper.make_node("Add", ["row", "column"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    constants = {
        "row": np.zeros((1, 1 << 16), np.float32),
        "column": np.zeros((1 << 16, 1), np.float32),
    }
    with pytest.raises(ConversionError, match="has a result of shape"):
        import_onnx(model(nodes, {"x": (1, 1)}, constants=constants))


def test_many_large_constants_are_too_large_together() -> None:
    nodes = [helper.make_node("Add", ["row", "column"], ["c0"], name="add0")]
    nodes += [
        helper.make_node("Mul", [f"c{i}", "column"], [f"c{i + 1}"], name=f"mul{i}")
        for i in range(40)
    ]
    nodes.append(helper.make_node("Add", ["x", "c40"], ["y"], name="last"))
    constants = {
        "row": np.zeros((1, 1 << 14), np.float32),
        "column": np.zeros((1 << 12, 1), np.float32),
    }
    with pytest.raises(ConversionError, match=r"mul.*asks for too many bytes of arrays \("):
        import_onnx(model(nodes, {"x": (1, 1)}, constants=constants))


def test_subgraphs_and_functions_are_named() -> None:
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
    )
    condition = numpy_helper.from_array(np.array(True), "yes")
    nodes = [
        helper.make_node("Constant", [], ["yes"], value=condition),
        helper.make_node("If", ["yes"], ["i"], name="if", then_branch=branch, else_branch=branch),
        helper.make_node("Own", ["x"], ["y"], name="own", domain="my.domain"),
    ]
    made = model(nodes, {"x": MAP}, outputs=["y", "i"])
    made.functions.append(
        helper.make_function(
            "my.domain",
            "Own",
            ["a"],
            ["b"],
            [helper.make_node("Own", ["a"], ["b"], domain="my.domain")],
            [helper.make_opsetid("", 17)],
        )
    )
    with pytest.raises(ConversionError) as caught:
        import_onnx(made)
    assert caught.value.problems == [
        "if: If holds a graph of its own",
        "own: my.domain.Own is a function of the model's own; inline it (onnx.inliner) before "
        "conversion",
    ]


def test_damaged_files_never_crash(tmp_path: Path) -> None:
    """Bytes changed, cut off or repeated at random: an error of PhoneBit's, or a graph."""
    good = conv().SerializeToString()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.onnx"
    refused = 0
    for _ in range(600):
        content = bytearray(good)
        for _ in range(int(rng.integers(1, 6))):
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
        cut = int(rng.integers(len(content))) if rng.random() < 0.2 else len(content)
        path.write_bytes(bytes(content[:cut]))
        try:
            import_onnx(path)
        except PhoneBitError as error:
            assert "bug in PhoneBit" not in str(error), error
            refused += 1
    assert refused > 60


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"PK\x03\x04", b"\x0a" * 4096])
def test_other_files_are_no_onnx(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.onnx"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match=r"is damaged, or no ONNX file|holds no graph"):
        import_onnx(path)


@pytest.mark.parametrize("scale", [0.0, 1e-45])
def test_scales_that_divide_to_infinity_end_without_a_warning(scale: float) -> None:
    number = np.array(scale, np.float32)
    zero, bits = np.array(0, np.float32), np.array(4, np.float32)
    made = single("Quant", MAP, number, zero, bits, domain="qonnx.custom_op.general", signed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if scale:
            convert(made)
        else:
            with pytest.raises(ConversionError, match="has a scale of 0"):
                convert(made)


def test_weights_whose_sums_overflow_are_no_bug() -> None:
    weights = np.full((5, 4, 3, 3), np.finfo(np.float32).max, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert(single("Conv", MAP, weights))
