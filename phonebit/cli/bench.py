"""``phonebit bench``: how fast a network is here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from phonebit.cli.bench_energy import EnergyFlags, bench_energy
from phonebit.cli.bench_text import print_bench
from phonebit.cli.console import output, print_json, progress
from phonebit.cli.groups import Without
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.options import EngineFlags, JsonOption, ThreadsOption
from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.network import Network


def bench(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    *,
    threads: ThreadsOption = 0,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of measured runs.")] = 100,
    warmup: Annotated[int, typer.Option(min=0, metavar="N", help="Warm-up runs.")] = 10,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Batch size.")] = 1,
    profile: Annotated[bool, typer.Option("--profile", help="Show the time per layer.")] = False,
    image: Annotated[
        Path | None, typer.Option("--image", metavar="IMAGE", help="Use this image as input.")
    ] = None,
    engine: Annotated[EngineFlags, Without("threads")],
    energy: EnergyFlags,
    as_json: JsonOption = False,
    flags: ImageFlags,
) -> None:
    """Measure latency, throughput and energy on random inputs or on an image."""
    from phonebit.devices.environment import environment

    energy.check()
    network = engine.load(file, threads=threads)
    inputs, origin = bench_inputs(network, batch, image, flags)
    with progress("measuring", 10, quiet=as_json) as advance:
        result = network.bench(
            inputs, runs=runs, warmup=warmup, progress=lambda: advance("measuring")
        )
    document = {
        "file": str(file),
        "device": network.device,
        "isa": network.isa,
        "precision": engine.precision,
        "kernels": engine.kernels,
        "threads": network.threads,
        "warmup": warmup,
        "input": origin,
        **result.to_dict(),
        "memory": network.memory,
        "startup": network.startup,
        "coexec": network.coexec,
        "environment": environment(engine.device),
    }
    if energy.energy:
        document["energy"] = bench_energy(network, inputs, energy, quiet=as_json)
    if profile:
        repeats = max(1, min(runs, 100))
        document["layers"] = [entry.to_dict() for entry in network.profile(inputs, repeats)]
    if as_json:
        print_json(document)
    else:
        print_bench(output(), document)


def bench_inputs(
    network: Network, batch: int, image: Path | None, flags: ImageFlags
) -> tuple[dict[str, NDArray[Any]], str]:
    """What to run the network on.

    Args:
        network: the loaded file.
        batch: inputs per run.
        image: the image that every input is, or None: random ones.
        flags: what the image becomes, beyond the file's own rule.

    Returns:
        Arrays by input name, and where they come from, for people.

    Raises:
        InputError: if there is an image but several inputs, or the image does not fit; if there
            are flags without an image.
    """
    from phonebit.network.random_inputs import random_inputs

    if image is None:
        if flags != ImageFlags():
            raise InputError("flags for an image, but no image", hint="give --image=IMAGE")
        return random_inputs(network.inputs, batch), "random"
    if len(network.inputs) != 1:
        raise InputError(
            "the network has several inputs", where=str(network.path), hint="leave --image out"
        )
    from phonebit.images.image_files import PLAIN_LEVELS, load_image
    from phonebit.images.rule_text import rule_text

    info = network.inputs[0]
    rule = flags.rule_for(network, info)
    loaded = load_image(image, info, rule)
    text = rule_text((rule or PLAIN_LEVELS).for_input(info))
    return {info.name: np.repeat(loaded.array[None], batch, axis=0)}, f"{image}: {text}"
