"""Whether planning reckons with the launches that the runtime really makes on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phonebit.devices.kernel_choice import KernelChoice
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import GpuDispatch, GpuFacts, is_cut
from phonebit.planner.predict.samples import PartSample, Samples


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
    for sample in parts:
        if sample.processor != Processor.GPU or sample.variant == "none":
            continue
        ran = KernelChoice.parse(sample.variant)
        known = passed_over[is_cut(sample.layer, sample.part)]
        for choice in dispatch.candidates(sample.layer, sample.part):
            if choice == ran:
                known[choice] = False
                break
            known.setdefault(choice, True)
    refused, for_cuts = (
        tuple(sorted(_choice_text(choice) for choice, is_refused in known.items() if is_refused))
        for known in passed_over.values()
    )
    return replace(gpu, refused=refused, refused_for_cuts=for_cuts)


def dispatch_agreement(samples: Samples, dispatch: GpuDispatch) -> tuple[int, list[PartSample]]:
    """Whether Python's reckoning of launches is what the runtime did.

    Args:
        samples: With the launches that the runtime made.
        dispatch: What predictors reckon with.

    Returns:
        How many samples agree, and those that do not.
    """
    differing = []
    agreeing = 0
    for sample in samples.parts:
        if sample.processor != Processor.GPU or not sample.dispatch:
            continue
        expected = [
            {
                "kernel": launch.kernel,
                "global": list(launch.global_size),
                "local": list(launch.local_size),
            }
            for launch in dispatch.launches(sample.layer, sample.part)
        ]
        ran = [
            {name: launch[name] for name in ("kernel", "global", "local")}
            for launch in sample.dispatch
        ]
        if expected == ran:
            agreeing += 1
        else:
            differing.append(sample)
    return agreeing, differing


def _choice_text(choice: KernelChoice) -> str:
    return " ".join([choice.kernel, *(f"{name}={value}" for name, value in choice.parameters)])
