"""Which kernel choices the runtime passes over on a device, and whether planning reckons so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phonebit.devices.kernel_choice import KernelChoice
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import GpuDispatch, GpuFacts, is_cut
from phonebit.planner.predict.samples import PartSample


def with_refusals(gpu: GpuFacts, parts: Sequence[PartSample]) -> GpuFacts:
    """Facts about a GPU with the kernel choices that the runtime passes over there.

    They failed their self-test, or a limit that only drivers know: they stand before the choice
    that ran, wherever they do.

    Args:
        gpu: Facts from before any measurement.
        parts: With the choices that ran.
    """
    dispatch = GpuDispatch(gpu)
    passed_over: dict[bool, dict[KernelChoice, bool]] = {False: {}, True: {}}
    for sample in _launched(parts):
        ran = KernelChoice.parse(sample.variant)
        known = passed_over[is_cut(sample.layer, sample.part)]
        for choice in dispatch.candidates(sample.layer, sample.part):
            known[choice] = choice != ran and known.get(choice, True)
            if choice == ran:
                break
    refused, for_cuts = (
        tuple(sorted(_text(choice) for choice, is_refused in known.items() if is_refused))
        for known in passed_over.values()
    )
    return replace(gpu, refused=refused, refused_for_cuts=for_cuts)


def dispatch_agreement(parts: Sequence[PartSample], dispatch: GpuDispatch) -> tuple[int, int]:
    """How many samples ran the choice that predictors reckon with, and how many another one.

    They differ where another version of the runtime took the samples.
    """
    agreeing = differing = 0
    for sample in _launched(parts):
        expected = dispatch.launches(sample.layer, sample.part)[-1].choice
        is_expected = KernelChoice.parse(sample.variant) == expected
        agreeing, differing = agreeing + is_expected, differing + (not is_expected)
    return agreeing, differing


def _launched(parts: Sequence[PartSample]) -> list[PartSample]:
    """Those that the GPU computed with a kernel."""
    on_gpu = [sample for sample in parts if sample.processor == Processor.GPU]
    return [sample for sample in on_gpu if sample.variant != "none"]


def _text(choice: KernelChoice) -> str:
    return " ".join([choice.kernel, *(f"{name}={value}" for name, value in choice.parameters)])
