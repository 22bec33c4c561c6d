"""The order of the passes, and the checks around each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from phonebit.converter.cost import total_macs
from phonebit.converter.engine_rules import check_engine
from phonebit.converter.ir import Graph
from phonebit.converter.passes.base import Pass, PassLog, copy_graph, refresh_types
from phonebit.converter.passes.binary_planes import BinaryPlanes
from phonebit.converter.passes.check import ReferenceCheck
from phonebit.converter.passes.compute_quantizers import ComputeQuantizers
from phonebit.converter.passes.decide_zeros import Zeros, decide_zeros
from phonebit.converter.passes.expand_planes import ExpandPlanes
from phonebit.converter.passes.explicit_pads import ExplicitPads
from phonebit.converter.passes.fold_dequantize import FoldDequantize
from phonebit.converter.passes.fuse_epilogues import FuseEpilogues
from phonebit.converter.passes.fuse_float_thresholds import FuseFloatThresholds
from phonebit.converter.passes.fuse_integer_thresholds import FuseIntegerThresholds
from phonebit.converter.passes.hoist_signs import HoistSigns
from phonebit.converter.passes.hoist_steps import HoistSteps
from phonebit.converter.passes.lower_arithmetic import LowerArithmetic
from phonebit.converter.passes.lower_planes import LowerPlanes
from phonebit.converter.passes.materialise_floats import MaterialiseFloats
from phonebit.converter.passes.merge_comparisons import MergeComparisons
from phonebit.converter.passes.merge_dequantize import MergeDequantize
from phonebit.converter.passes.merge_duplicates import MergeDuplicates
from phonebit.converter.passes.merge_flatten import MergeFlatten
from phonebit.converter.passes.merge_pads import MergePads
from phonebit.converter.passes.merge_scale_bias import MergeScaleBias
from phonebit.converter.passes.narrow_pads import NarrowPads
from phonebit.converter.passes.quantize_float_weights import QuantizeFloatWeights
from phonebit.converter.passes.recognise_binary import RecogniseBinary
from phonebit.converter.passes.recognise_products import RecogniseProducts
from phonebit.converter.passes.remove_dead_nodes import RemoveDeadNodes
from phonebit.converter.passes.remove_identities import RemoveIdentities
from phonebit.converter.passes.round_float_weights import RoundFloatWeights
from phonebit.converter.passes.sink_planes import SinkPlanes
from phonebit.converter.passes.split_bias import SplitBias
from phonebit.errors import ConversionError, VerificationError

FloatWeights = Literal["f32", "f16", "i8"]

MAC_BUDGET: Final = 4_000_000_000
"""Networks with more multiply-accumulates than this are not executed in NumPy after each pass."""

PASSES: Final[tuple[Pass, ...]] = (
    RemoveDeadNodes(),  # nothing below should spend work, or report problems, on dead layers
    RemoveIdentities(),  # dropout between a sign and its convolution would hide one from the other
    MergeComparisons(),  # before all that treats quantizers
    RemoveDeadNodes(),  # the comparisons
    BinaryPlanes(),  # takes those of which fewer planes are cheaper
    ComputeQuantizers(),  # before planes, for quantizers that do not need them
    ExpandPlanes(),  # from here on every quantizer is signs, and the sum of their bits
    MergeDuplicates(),  # two equal signs of a value look like two readers of it
    SplitBias(),  # every later pass knows biases only as steps
    HoistSigns(),  # before anything looks for bits: it is what makes pads and flattens read bits
    RemoveIdentities(),  # hoisting may have put a sign after a sign
    MergeDuplicates(),  # hoisting may have made equal signs of one value
    MergePads(),  # before recognition: bits padded with 0 are binary only inside the convolution
    MergeFlatten(),  # after HoistSigns, so that the map that is flattened is one of bits
    MergePads(),  # a flattened pad has become one in front of a convolution
    NarrowPads(),  # after the last MergePads, which would merge what it takes out
    RemoveDeadNodes(),  # the merged pads and reshapes
    SinkPlanes(),  # after the merging of pads and reshapes, which are best part of a convolution
    MergeDequantize(),  # a rescaling layer would hide the input from its convolution
    FoldDequantize(),  # after MergePads: the fold needs to see what the padding is
    RecogniseBinary(),  # after all that changes inputs and weights of convolutions
    RecogniseProducts(),  # likewise, of two activations
    LowerPlanes(),  # after both, which read the planes
    RemoveDeadNodes(),  # quantized values that nobody needs as numbers
    FuseIntegerThresholds(),  # on the framework's own formula, so before LowerArithmetic
    FuseFloatThresholds(),  # likewise; takes the signs that no integer layer could
    LowerArithmetic(),  # after both: what is left of BN is needed as floats
    ExplicitPads(),  # after RecogniseBinary, which knows non-zero padding of bits
    MaterialiseFloats(),  # after everything that turns floats into bits, before fusion
    HoistSteps(),  # all elementwise work is now Elementwise; what moves up can be fused
    FuseEpilogues(),  # after HoistSteps
    MergeScaleBias(),  # fusion brings steps together
    RemoveDeadNodes(),  # values that were only read as bits
)


@dataclass
class PipelineResult:
    """The engine graph, what the passes had to say, and how the check went."""

    graph: Graph
    log: PassLog
    ties: int = 0


def run_pipeline(
    graph: Graph,
    *,
    check: bool = True,
    zeros: Zeros = "auto",
    float_weights: FloatWeights = "f32",
    passes: tuple[Pass, ...] = PASSES,
) -> PipelineResult:
    """Rewrites a source graph into an engine graph.

    Args:
        graph: Source graph; it is not changed.
        check: Whether to compare the reference results before and after each pass (types, names and
            the file's rules are always checked).
        zeros: What becomes of signs with a value of their own for an exact zero (PyTorch's).
        float_weights: "f16", "i8": round the weights of full-precision layers to halves, or to
            8-bit integers with a scale per filter, after all passes.
        passes: The passes in order.

    Returns:
        The engine graph, notes for the report, and the number of float ties that the check met.

    Raises:
        ConversionError: The source graph is inconsistent, or needs what the format cannot express.
        VerificationError: A pass changed a result; the message names it.
    """
    current = copy_graph(graph)
    refresh_types(current)
    for node in current.nodes:
        node.sources = node.sources or [node.name]
    log = PassLog()
    decide_zeros(current, zeros, log)
    macs = total_macs(current)
    if check and macs > MAC_BUDGET:
        log.notes.append(
            f"reference check skipped: {macs / 1e9:.1f} GMAC are more than {MAC_BUDGET / 1e9:.0f}"
        )
        check = False
    with np.errstate(all="ignore"):  # checkpoints may have any numbers
        reference = ReferenceCheck(current) if check else None
        for step in passes:
            current = _apply(step, current, log, reference)
    if float_weights != "f32":
        # Not compared: this one is asked to change results, and its own notes say by how much.
        rounding = RoundFloatWeights() if float_weights == "f16" else QuantizeFloatWeights()
        current = _apply(rounding, current, log, None)
    check_engine(current)
    ties = reference.ties if reference is not None else 0
    if ties:
        log.notes.append(
            f"{ties} bits of the random check input were float ties: the value before the sign was "
            "zero up to rounding"
        )
    return PipelineResult(current, log, ties)


def _apply(step: Pass, graph: Graph, log: PassLog, reference: ReferenceCheck | None) -> Graph:
    result = copy_graph(graph)
    try:
        step.run(result, log)
        refresh_types(result)
    except ConversionError as error:
        raise ConversionError(str(error), where=f"pass {step.name}") from error
    for name in (*graph.inputs, *graph.outputs):
        if result.types.get(name) != graph.types[name]:
            raise VerificationError(
                f"pass {step.name} changed the type of {name!r}",
                expected=graph.types[name],
                got=result.types.get(name),
            )
    if result.inputs != graph.inputs or result.outputs != graph.outputs:
        raise VerificationError(f"pass {step.name} changed the network's inputs or outputs")
    if reference is not None:
        reference.accept(result, f"pass {step.name}", step.rounds)
    return result
