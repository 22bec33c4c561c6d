"""From a trained network to a ``.pbit`` file, in one call."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np

from phonebit.converter.importers.sources import ImportOptions, framework_of, import_source
from phonebit.converter.input_types import chosen_preprocessing, input_rules, read_bytes
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import BinaryConv2D, BinaryDepthwiseConv2D
from phonebit.converter.passes.base import copy_graph
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.converter.passes.pipeline import FloatWeights, PipelineResult, run_pipeline
from phonebit.converter.report import ConversionReport, build_report
from phonebit.converter.writer import to_bytes
from phonebit.detection.head import DetectionHead
from phonebit.errors import ConversionError, InputError
from phonebit.floating_point import rounds_by_default
from phonebit.format.records import MAX_LABELS, MAX_NAME_BYTES
from phonebit.format.writer import PBIT_FILE
from phonebit.images.preprocessing import Preprocessing
from phonebit.keywords import check_keywords
from phonebit.output_files import check_output, write_output

_log = logging.getLogger(__name__)

InputDtype = Literal["f32", "u8"]
PathLike = str | os.PathLike[str]


@dataclass
class Conversion:
    """A finished conversion in memory: the two graphs, the file's bytes and the report."""

    source: Graph
    engine: Graph
    content: bytes
    report: ConversionReport


class ConvertOptions(TypedDict, total=False):
    """How a network is converted: keywords of ``convert`` and ``convert_graph``.

    Those that are left out have their defaults, which are named first.

    Attributes:
        input_dtype: "f32": the network reads what it read in training. "u8": it reads image
            levels, and computes their values by ``preprocessing`` or ``input_range``.
        input_range: Short for ``Preprocessing(range=input_range)``: what the levels 0 and 255 were
            in training, e.g. (-1.0, 1.0).
        preprocessing: Image preprocessing; stored in the file, where
            ``phonebit run`` and others read it. It holds for every input.
        labels: Class names, one per channel of the first output, or per class if it gives boxes.
        detection: The anchors of a detector, if the first output gives boxes; stored in the file,
            where ``phonebit run`` finds them.
        strict: Whether it is an error that a layer with quantized kernel and quantized input did
            not become binary; False.
        check: Whether the network is executed in NumPy before and after each pass to compare;
            True.
        name: The network's name; None: the model's own.
        zeros: PyTorch's sign(0) is 0. "auto": proven impossible, or kept exact where zeros have a
            cause (a ReLU, an even number of +-1, a region of one colour, which images of 0, the
            minimum and the maximum value show); where they are a rare accident of float sums
            they count as +1, and the report says so. "exact": kept wherever they are possible.
            "plus": always +1.
        float_weights: How weights of full-precision layers are stored. "f32": exactly. "f16":
            rounded to the nearest half, 2 bytes each. "i8": rounded to 8-bit integers, 1 byte each,
            with a scale per filter. Arithmetic stays float32 (unless loaded with precision="fast");
            the report says how large the rounding is, and which layers keep f32 because they are
            out of range.
    """

    input_dtype: InputDtype
    input_range: tuple[float, float] | None
    preprocessing: Preprocessing | None
    labels: Sequence[str] | None
    detection: DetectionHead | None
    strict: bool
    check: bool
    name: str | None
    zeros: Zeros
    float_weights: FloatWeights


@rounds_by_default
def convert(
    source: PathLike | Any,
    example_or_path: Any = None,
    path: PathLike | None = None,
    /,
    *,
    output_path: PathLike | None = None,
    example_input: Any = None,
    input_shape: Sequence[int] | None = None,
    model: str | None = None,
    custom_quantizers: Mapping[str, str] | None = None,
    custom_layers: Mapping[str, Any] | None = None,
    trust_lambdas: bool = False,
    replace_any: bool = False,
    **options: Unpack[ConvertOptions],
) -> ConversionReport:
    """Converts a trained network and writes it as a ``.pbit`` file.

    ::

        convert("larq.h5", "network.pbit")
        convert("program.pt2")  # only the report, no file
        convert("weights.pth", "network.pbit", model="package.module:factory",
                input_shape=(1, 3, 224, 224))
        convert(module, x, "network.pbit")  # a torch.nn.Module

    Args:
        source: Path of a Keras ``.h5`` or ``.keras`` file, of a PyTorch ``.pt2`` program or, with
            ``model``, of a PyTorch checkpoint, of an ``.onnx`` model or of a ``.tflite`` file; or
            a live Keras or Larq model, ``torch.nn.Module``, ``torch.export.ExportedProgram`` or
            ``onnx.ModelProto``.
        example_or_path: ``example_input``; or, if it is a path, ``output_path``.
        path: ``output_path``.
        output_path: Where to write; without it no file is written, and the report tells what would
            be. An existing ``.pbit`` file is replaced only when the new one is complete.
        example_input: For a PyTorch module: a tensor, or a tuple of them, to trace it with.
        input_shape: Keras: (height, width, channels), for models that leave them open. PyTorch:
            (N, channels, height, width), instead of ``example_input``. ONNX: the shape of the only
            input, for models that leave it open.
        model: For a PyTorch checkpoint: "package.module:factory", a function that builds the
            module whose parameters the file holds.
        custom_quantizers: What Keras quantizers of your own compute, by the name under which they
            are saved: "sign" (x >= 0 -> +1, else -1), "none" or another kind that
            docs/converting.md lists.
        custom_layers: What Keras layers of your own compute, see
            ``phonebit.converter.importers.keras.plugin``.
        trust_lambdas: Run the Python code in a Keras file's Lambda layers, to see what it computes.
        replace_any: Also replace a file that is no ``.pbit`` file; never the source.
        **options: See ``ConvertOptions``.

    Returns:
        The report.

    Raises:
        ConversionError: The source cannot be read, has unsupported layers (UnsupportedLayerError),
            options that do not fit it, or, with ``strict``, layers that are not binary; all
            problems are listed. Also if the file cannot be written.
        InputError: The output path is the source, a folder, or a file of another kind; or the
            arguments are in another order.
        TypeError: There is no option of a name.
        VerificationError: A pass changed a result: a bug in PhoneBit.
    """
    check_keywords(options, ConvertOptions)
    example_input, output_path = _example_and_output(
        [argument for argument in (example_or_path, path) if argument is not None],
        example_input,
        output_path,
    )
    origin: dict[str, str] = {}
    inputs: list[Path] = []
    if isinstance(source, str | os.PathLike):
        inputs = [Path(source)]
        origin["file"] = inputs[0].name
    if output_path is not None:
        check_output(output_path, PBIT_FILE, inputs, replace_any)
    import_options = ImportOptions(
        input_shape, model, example_input, custom_quantizers, custom_layers, trust_lambdas
    )
    graph = import_source(source, import_options)
    _log.info("imported %s: %d nodes", graph.name, len(graph.nodes))
    origin["framework"] = framework_of(source, import_options)
    conversion = convert_graph(graph, origin=origin, **options)
    if output_path is not None:
        write_conversion(conversion, output_path, inputs, replace_any)
    _log.info("converted: %r", conversion.report)
    return conversion.report


def _example_and_output(
    arguments: Sequence[Any], example_input: Any, output_path: PathLike | None
) -> tuple[Any, PathLike | None]:
    """What is which of the arguments after the source, with and without a keyword."""
    kinds = ["path" if isinstance(a, str | os.PathLike) else "example" for a in arguments]
    keywords = {"example": example_input is not None, "path": output_path is not None}
    if kinds not in ([], ["path"], ["example"], ["example", "path"]) or any(
        keywords[kind] for kind in kinds
    ):
        names = {"example": "example_input=...", "path": "output_path=..."}
        given = [names[kind] for kind, is_given in keywords.items() if is_given]
        raise InputError(
            "wrong arguments",
            where="convert",
            expected='convert(source), convert(source, "net.pbit"), convert(module, example) or '
            'convert(module, example, "net.pbit")',
            got=f"convert({', '.join(['source', *kinds, *given])})",
        )
    found = dict(zip(kinds, arguments, strict=True))
    return found.get("example", example_input), found.get("path", output_path)


def write_conversion(
    conversion: Conversion, path: PathLike, inputs: Iterable[Path] = (), replace_any: bool = False
) -> None:
    """Writes a conversion's file and notes the path in its report.

    Args:
        conversion: What ``convert_graph`` gave.
        path: The file; an existing one is replaced only when the new one is complete.
        inputs: Files that must stay.
        replace_any: Also replace a file that is no ``.pbit`` file.

    Raises:
        InputError: The path is one of the inputs, a folder, or a file of another kind.
        ConversionError: It cannot be written.
    """
    try:
        write_output(path, conversion.content, PBIT_FILE, inputs, replace_any)
    except OSError as error:
        raise ConversionError(
            f"cannot be written: {error.strerror}",
            where=os.fspath(path),
            hint="choose another output path",
        ) from error
    conversion.report.output_path = os.fspath(path)


@rounds_by_default
def convert_graph(
    graph: Graph, *, origin: dict[str, str] | None = None, **options: Unpack[ConvertOptions]
) -> Conversion:
    """Converts a source graph without touching the disk.

    Args:
        graph: Source graph; it is not changed.
        origin: What the file's metadata says about where the network came from.
        **options: See ``ConvertOptions``.

    Raises:
        ConversionError: As ``convert``.
        TypeError: There is no option of a name.
        VerificationError: As ``convert``.
    """
    check_keywords(options, ConvertOptions)
    known, float_weights = get_args(FloatWeights), options.get("float_weights", "f32")
    if float_weights not in known:
        expected = " or ".join(map(repr, known))
        raise ConversionError("float_weights", expected=expected, got=repr(float_weights))
    rule = chosen_preprocessing(options.get("input_range"), options.get("preprocessing"))
    prepared = prepare_source(graph, options.get("input_dtype", "f32"), rule)
    if (name := options.get("name")) is not None:
        prepared.name = name
    if (detection := options.get("detection")) is not None:
        prepared.detection = {prepared.outputs[0]: _fitting(prepared, detection)}
    if (labels := options.get("labels")) is not None:
        prepared.labels = _checked_labels(prepared, labels)
    result = run_pipeline(
        prepared,
        check=options.get("check", True),
        zeros=options.get("zeros", "auto"),
        float_weights=float_weights,
    )
    if options.get("strict", False):
        _check_strict(prepared, result)
    content = to_bytes(result.graph, _metadata(result.graph, origin or {}))
    report = build_report(prepared, result.graph, result.log, len(content))
    return Conversion(prepared, result.graph, content, report)


def prepare_source(
    graph: Graph, input_dtype: InputDtype = "f32", preprocessing: Preprocessing | None = None
) -> Graph:
    """The source graph as it is converted: with the asked input type and finite numbers only.

    Args:
        graph: Source graph; it is not changed.
        input_dtype: See ``convert``.
        preprocessing: See ``convert``.

    Raises:
        ConversionError: The options contradict each other, or parameters are infinite or NaN.
    """
    if input_dtype not in ("f32", "u8"):
        raise ConversionError("input_dtype", expected="'f32' or 'u8'", got=repr(input_dtype))
    if input_dtype == "u8" and preprocessing is None:
        raise ConversionError(
            "input_dtype='u8' without a meaning of the levels",
            hint="give input_range: what 0 and 255 were in training, e.g. (-1.0, 1.0)",
        )
    prepared = copy_graph(graph)
    for node in prepared.nodes:
        node.sources = node.sources or [node.name]
    problems = [
        f"{node.name}: {'NaN or infinite' if array.size else 'empty'} parameters"
        for node in prepared.nodes
        for array in node.op.parameters()
        if not array.size or not np.all(np.isfinite(array))
    ]
    if problems:
        hint = "the checkpoint is damaged or its training diverged"
        raise ConversionError(list(dict.fromkeys(problems)), where=graph.name, hint=hint)
    if preprocessing is not None:
        rules = input_rules(prepared, preprocessing)
        prepared = read_bytes(prepared, rules) if input_dtype == "u8" else prepared
        prepared.preprocessing = rules
    return prepared


def _fitting(graph: Graph, detection: DetectionHead) -> DetectionHead:
    try:
        detection.classes(graph.types[graph.outputs[0]].shape[2])
    except InputError as error:
        raise ConversionError(str(error)) from error
    return detection


def _checked_labels(graph: Graph, labels: Sequence[str]) -> list[str]:
    classes = graph.class_count()
    if len(labels) != classes:
        what = "classes of the boxes" if graph.detection else "channels of the output"
        raise ConversionError("number of labels", expected=f"{classes} ({what})", got=len(labels))
    if classes > MAX_LABELS:
        raise ConversionError("number of labels", expected=f"at most {MAX_LABELS}", got=classes)
    names = [str(label) for label in labels]
    for index, name in enumerate(names):
        size = len(name.encode(errors="replace"))
        if not 0 < size <= MAX_NAME_BYTES or "\0" in name or not _is_unicode(name):
            expected = f"1 to {MAX_NAME_BYTES} bytes of text"
            raise ConversionError(f"label {index}", expected=expected, got=repr(name[:80]))
    return names


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _check_strict(graph: Graph, result: PipelineResult) -> None:
    missed = not_binary(result.graph, graph.expected_binary)
    if missed:
        reasons = result.log.not_binary
        raise ConversionError(
            [f"{name}: trained as binary, but {reasons.get(name, 'is gone')}" for name in missed],
            where=graph.name,
            hint="convert without strict to accept these as they are",
        )


def not_binary(engine: Graph, names: Sequence[str]) -> list[str]:
    """Those of the named nodes that are no binary convolution in the engine graph."""
    binary = {
        node.name
        for node in engine.nodes
        if isinstance(node.op, BinaryConv2D | BinaryDepthwiseConv2D)
    }
    return [name for name in names if name not in binary]


def _metadata(engine: Graph, origin: dict[str, str]) -> dict[str, Any]:
    """What the file says about itself, beyond what it computes."""
    try:
        producer = f"phonebit {version('phonebit')}"
    except PackageNotFoundError:
        producer = "phonebit (not installed)"
    return {
        "producer": producer,
        "source": origin,
        "layers": [_layer_metadata(node) for node in engine.nodes if node.inputs],
    }


def _layer_metadata(node: Node) -> dict[str, Any]:
    return {"name": node.name, "sources": node.sources, "kind": type(node.op).__name__}
