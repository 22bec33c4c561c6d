"""A network as an engine without fusion runs it: every layer is an op of its own.

A binary convolution writes its integer accumulators to memory as float32, batch normalization reads
and writes them, the sign packs them, pooling follows; ops and kernels are the engine's own. What
differs from the fused network is only the list of passes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from phonebit.converter.convert import prepare_source
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Elementwise, Sign
from phonebit.converter.ops.epilogue import Epilogue, EpilogueOp, ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    merged_sources,
    only_consumer,
    refresh_types,
    remove_node,
    replace_node,
)
from phonebit.converter.passes.fuse_epilogues import FuseEpilogues
from phonebit.converter.passes.fuse_float_thresholds import FuseFloatThresholds
from phonebit.converter.passes.fuse_integer_thresholds import FuseIntegerThresholds
from phonebit.converter.passes.hoist_signs import HoistSigns
from phonebit.converter.passes.hoist_steps import HoistSteps
from phonebit.converter.passes.lower_arithmetic import LowerArithmetic
from phonebit.converter.passes.merge_scale_bias import MergeScaleBias
from phonebit.converter.passes.pipeline import PASSES, run_pipeline
from phonebit.converter.writer import to_bytes
from phonebit.images.preprocessing import Preprocessing
from phonebit.models.networks import INPUT_RANGE, NETWORKS

FUSING: Final = (FuseIntegerThresholds, FuseFloatThresholds, FuseEpilogues, HoistSigns, HoistSteps)


class LowerSigns(Pass):
    """Gives every sign an op of its own: b = sign(v) becomes b = elementwise(v): v >= 0."""

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if isinstance(node.op, Sign):
                channels = graph.types[node.inputs[0]].shape[2]
                threshold = np.full(channels, node.op.threshold, np.float32)
                op = Elementwise(Epilogue([], threshold))
                replace_node(graph, node, replace(node, op=op, value=None, bits=node.value))
        refresh_types(graph)


class JoinScales(Pass):
    """Lets a batch normalization take over the scale of the weights or of the image before it.

    Two ops, u = v * alpha + 0 and n = u * s + t, become one, n = (v * alpha + 0) * s + t, of which
    MergeScaleBias makes one step.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            reader = only_consumer(graph, node.value) if node.value is not None else None
            scales = [_scales(each.op) for each in (node, reader) if each is not None]
            if reader is not None and all(scales):
                joined = replace(
                    reader,
                    op=Elementwise(Epilogue([step for steps in scales for step in steps])),
                    inputs=list(node.inputs),
                    sources=merged_sources(node, reader),
                )
                replace_node(graph, reader, joined)
                remove_node(graph, node)


def _scales(op: object) -> list[EpilogueOp]:
    """The steps of an element-wise op that only scales and shifts; none of another op."""
    if not isinstance(op, Elementwise) or op.epilogue.threshold is not None:
        return []
    steps = op.epilogue.steps
    return list(steps) if all(isinstance(step, ScaleBias) for step in steps) else []


def unfused_passes() -> tuple[Pass, ...]:
    """The converter's passes without those that fuse; signs and scales become ops of their own."""
    passes: list[Pass] = []
    for step in PASSES:
        if isinstance(step, FUSING):
            continue
        if isinstance(step, MergeScaleBias):
            passes.append(JoinScales())
        passes.append(step)
        if isinstance(step, LowerArithmetic):
            passes.append(LowerSigns())
    return tuple(passes)


def unfused_network(name: str) -> bytes:
    """One of the networks of ``phonebit.models.networks`` without fusion, as a ``.pbit`` file."""
    definition = NETWORKS[name]
    source = prepare_source(definition(), definition.input_dtype, Preprocessing(INPUT_RANGE))
    return to_bytes(run_pipeline(source, check=False, passes=unfused_passes()).graph)
