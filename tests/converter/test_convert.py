"""``phonebit.convert``: options, report, strictness, and what happens when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import Source, integers

from phonebit.converter.convert import convert, convert_graph
from phonebit.converter.cost import total_macs
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import Conv2D, Sign, Softmax
from phonebit.converter.ops.epilogue import Clamp
from phonebit.converter.passes import pipeline
from phonebit.converter.reader import graph_from_bytes, read_graph
from phonebit.errors import ConversionError, InputError, UnsupportedLayerError
from phonebit.format.reader import read_contents
from phonebit.format.records import DataType
from phonebit.images.preprocessing import ColorOrder, Preprocessing

FIXTURES = Path(__file__).parent / "fixtures"
CHECKPOINT = FIXTURES / "binary_convolutions.h5"
SAME = Window((3, 3), pads=(1, 1, 1, 1))


def network() -> Graph:
    """Float stem, binary convolution with norm and sign, binary classifier."""
    net = Source((6, 6, 3))
    value = net.add("stem", Conv2D(net.signs(32, 3, 3, 3), SAME), "x")
    value = net.add("stem_norm", net.norm(32), value)
    value = net.add("sign1", Sign(), value)
    value = net.add("conv", Conv2D(net.signs(33, 3, 3, 32), SAME), value)
    value = net.add("norm", net.norm(33), value)
    value = net.add("sign2", Sign(), value)
    logits = net.add("logits", Conv2D(net.signs(10, 6, 6, 33), Window((6, 6))), value)
    graph = net.done(logits)
    graph.name = "little"
    graph.expected_binary = ["conv", "logits"]
    return graph


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("*.h5")))
def test_every_fixture_converts_and_computes_what_the_source_graph_computes(name: str) -> None:

    graph = import_larq(FIXTURES / name)
    conversion = convert_graph(graph)
    engine = graph_from_bytes(conversion.content)
    rng = np.random.default_rng(1)
    x = {
        value: rng.integers(0, 9, (2, *graph.types[value].shape)).astype(
            np.uint8 if graph.types[value].dtype == DataType.U8 else np.float32
        )
        for value in graph.inputs
    }
    before, after = run(graph, x), run(engine, x)
    for value, array in before.items():
        # Float layers are rearranged: relative to the tensor, float32 sums differ by about 1e-6.
        scale = max(1.0, float(np.abs(array).max()))
        np.testing.assert_allclose(after[value], array, atol=1e-5 * scale, err_msg=value)
    assert conversion.report.missed == []


def test_a_checkpoint_becomes_a_file_and_a_report(tmp_path: Path) -> None:
    target = tmp_path / "model.pbit"
    report = convert(CHECKPOINT, target)
    assert report.output_path == str(target)
    assert report.size_after_bytes == target.stat().st_size
    assert read_graph(target).outputs
    assert 0 < report.binary_mac_share <= 1
    assert json.loads(report.to_json()) == json.loads(json.dumps(report.to_dict()))
    metadata = read_contents(target).metadata
    assert metadata["source"] == {"framework": "keras", "file": CHECKPOINT.name}
    assert metadata["producer"].startswith("phonebit ")
    assert {"name", "sources", "kind"} == set(metadata["layers"][0])


def test_without_a_path_nothing_is_written(tmp_path: Path) -> None:
    copy = tmp_path / "net.h5"
    copy.write_bytes(CHECKPOINT.read_bytes())
    assert "not written" in repr(convert(copy))
    assert list(tmp_path.iterdir()) == [copy]


def test_the_report_says_what_became_binary_and_what_it_saves() -> None:
    report = convert_graph(network()).report
    layers = {layer.name: layer for layer in report.layers}
    assert [layer.binary for layer in report.layers] == [False, True, True]
    assert layers["stem"].reason == "binary weights on a real-valued input"
    assert layers["conv"].sources == ["conv", "norm", "sign2"]
    assert layers["conv"].parameters == 33 * 9 * 32 + 4 * 33
    assert layers["conv"].bytes_before == 4 * layers["conv"].parameters
    assert layers["conv"].bytes_after == 4 * (33 * 9 + 33)  # a word per tap, a threshold each
    assert report.macs == total_macs(network())
    binary = layers["conv"].macs + layers["logits"].macs
    assert report.binary_mac_share == pytest.approx(binary / report.macs)
    assert report.size_before_bytes == sum(layer.bytes_before for layer in report.layers)
    assert report.missed == [] and report.notes == []


def test_the_report_renders_as_a_table() -> None:
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    out = console.Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    out.print(convert_graph(network()).report.render())
    text = out.export_text()
    assert "conv" in text and "BinaryConv2D" in text and "MMAC are binary" in text


def missed_network() -> Graph:
    net = Source()
    bits = net.add("s", Sign(), "x")
    weights = net.rng.integers(-3, 4, (4, 3, 3, 4)).astype(np.float32)
    value = net.add("seven_values", Conv2D(weights, SAME), bits)
    value = net.add("float_input", Conv2D(net.signs(4, 3, 3, 4), SAME), value)
    graph = net.done(value)
    graph.expected_binary = ["seven_values", "float_input"]
    return graph


def test_strict_lists_every_layer_that_should_be_binary_and_is_not() -> None:
    with pytest.raises(ConversionError) as caught:
        convert_graph(missed_network(), strict=True)
    assert len(caught.value.problems) == 2
    problem = "seven_values: trained as binary, but the weights of a filter have more than four"
    assert problem in caught.value.problems[0]
    convert_graph(network(), strict=True)


def test_without_strict_the_report_names_them() -> None:
    report = convert_graph(missed_network()).report
    assert [layer.name for layer in report.missed] == ["seven_values", "float_input"]
    assert any(note.startswith("seven_values: trained as binary") for note in report.notes)


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"input_dtype": "u8"}, "give input_range"),
        ({"input_dtype": "f16"}, "expected 'f32' or 'u8', got 'f16'"),
        ({"input_dtype": "u8", "input_range": (1.0, 1.0)}, "two different finite numbers"),
        ({"input_dtype": "u8", "input_range": (0.0, float("nan"))}, "finite"),
        ({"preprocessing": Preprocessing((0, 1), color=ColorOrder.GRAY)}, "input 'x'.*got 3"),
        ({"labels": ["a", "b"]}, "expected 10 .*got 2"),
        ({"labels": ["a"] * 9 + [""]}, "label 9.*bytes of text"),
        ({"labels": ["a"] * 9 + ["b\0"]}, "label 9"),
        ({"labels": ["a"] * 9 + ["\ud800"]}, "label 9"),
        ({"labels": ["ä" * 513] + ["a"] * 9}, "label 0.*1024"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        convert_graph(network(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [convert, convert_graph])
def test_a_keyword_that_is_no_option_is_named(call: Any) -> None:
    """Before anything is read."""
    with pytest.raises(TypeError, match=r"'zero'; known: input_dtype, .*, zeros, float_weights"):
        call("missing.h5", zero="exact")


def test_labels_and_name_are_stored() -> None:
    labels = [f"class {index}" for index in range(10)]
    conversion = convert_graph(network(), labels=labels, name="mine")
    again = graph_from_bytes(conversion.content)
    assert again.labels == labels and again.name == "mine"


def test_parameters_that_are_not_finite_are_all_named() -> None:
    graph = network()
    for name in ("stem", "norm"):
        node = next(node for node in graph.nodes if node.name == name)
        if isinstance(node.op, Conv2D):
            node.op.weights[0, 0, 0, 0] = np.nan
        else:
            node.op.gamma[0] = np.inf  # type: ignore[union-attr]
    with pytest.raises(ConversionError) as caught:
        convert_graph(graph)
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["stem", "norm"]


def test_the_source_graph_is_not_changed() -> None:
    graph = network()
    names, types = [node.name for node in graph.nodes], dict(graph.types)
    weights = [node.op.weights.copy() for node in graph.nodes if isinstance(node.op, Conv2D)]
    labels = ["x"] * 10
    convert_graph(graph, input_dtype="u8", input_range=(-1.0, 1.0), name="other", labels=labels)
    assert [node.name for node in graph.nodes] == names and graph.types == types
    assert graph.name == "little" and graph.labels == []
    after = [node.op.weights for node in graph.nodes if isinstance(node.op, Conv2D)]
    for old, new in zip(weights, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_network_above_the_budget_skips_the_check_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "MAC_BUDGET", 1000)
    assert any("check skipped" in note for note in convert_graph(network()).report.notes)


EXAMPLE = np.zeros((1, 3, 6, 6), np.float32)


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The example inputs that conversions in an empty folder take; a graph is their network."""
    taken: list[Any] = []

    def imported(_: object, options: ImportOptions) -> Graph:
        taken.append(options.example_input)
        return network()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("phonebit.converter.convert.import_source", imported)
    monkeypatch.setattr("phonebit.converter.convert.framework_of", lambda *_: "torch")
    return taken


@pytest.mark.parametrize(
    ("arguments", "keywords", "has_example", "is_written"),
    [
        ((), {}, False, False),
        ((EXAMPLE,), {}, True, False),
        ((), {"example_input": EXAMPLE}, True, False),
        (("net.pbit",), {}, False, True),
        ((EXAMPLE, "net.pbit"), {}, True, True),
        ((EXAMPLE, Path("net.pbit")), {}, True, True),
        ((EXAMPLE,), {"output_path": "net.pbit"}, True, True),
        (("net.pbit",), {"example_input": EXAMPLE}, True, True),
        ((), {"example_input": EXAMPLE, "output_path": "net.pbit"}, True, True),
    ],
)
def test_example_and_path_are_taken_as_people_pass_them(
    examples: list[Any], arguments: Any, keywords: Any, has_example: bool, is_written: bool
) -> None:
    report = convert(object(), *arguments, **keywords)
    assert [example is EXAMPLE for example in examples] == [has_example]
    assert [path.name for path in Path().iterdir()] == (["net.pbit"] if is_written else [])
    assert (report.output_path is not None) == is_written == ("net.pbit" in repr(report))


@pytest.mark.parametrize(
    ("arguments", "keywords", "got"),
    [
        (("net.pbit", EXAMPLE), {}, r"got convert\(source, path, example\)"),
        ((EXAMPLE, EXAMPLE), {}, r"got convert\(source, example, example\)"),
        ((EXAMPLE,), {"example_input": EXAMPLE}, r"got convert\(source, example, example_input=.*"),
        (("a.pbit",), {"output_path": "b.pbit"}, r"got convert\(source, path, output_path=.*"),
    ],
)
def test_another_order_is_refused_with_the_right_one(
    examples: list[Any], arguments: Any, keywords: Any, got: str
) -> None:
    with pytest.raises(InputError, match=r'convert\(module, example, "net.pbit"\).*' + got):
        convert(object(), *arguments, **keywords)
    assert examples == list(Path().iterdir()) == []


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"not hdf5", CHECKPOINT.read_bytes()[:3000]])
def test_a_failed_conversion_keeps_the_old_file(tmp_path: Path, content: bytes) -> None:
    source, target = tmp_path / "broken.h5", tmp_path / "model.pbit"
    source.write_bytes(content)
    target.write_bytes(b"PBIT precious")
    with pytest.raises(ConversionError):
        convert(source, target)
    assert target.read_bytes() == b"PBIT precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_output_folder_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"none.*cannot be written"):
        convert(CHECKPOINT, tmp_path / "none" / "model.pbit")


def test_all_problems_of_a_model_are_one_error() -> None:
    error = UnsupportedLayerError(["a: no", "b: never"], where="net.h5", hint="remove them")
    assert error.problems == ["a: no", "b: never"]
    assert str(error).splitlines() == [
        "net.h5: 2 problems:",
        "  - a: no",
        "  - b: never",
        "remove them",
    ]


def test_softmax_on_top_is_kept() -> None:
    graph = network()
    net = Source()
    net.graph = graph
    net.step("scaled", Clamp(-4.0, 4.0), "logits")
    graph.outputs = [net.add("probabilities", Softmax(), "scaled")]
    engine = convert_graph(graph).engine
    x = integers(graph)
    np.testing.assert_allclose(
        run(engine, x)["probabilities"], run(graph, x)["probabilities"], rtol=1e-6
    )
