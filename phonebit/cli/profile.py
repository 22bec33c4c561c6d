"""``phonebit profile``: where a network's time goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phonebit.cli.bench import bench_inputs
from phonebit.cli.bench_text import print_bench
from phonebit.cli.console import output, print_json, progress
from phonebit.cli.groups import Without
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.options import EngineFlags, ForceOption, JsonOption, ThreadsOption
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape


def profile(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a page with charts.")
    ] = None,
    force: ForceOption = False,
    threads: ThreadsOption = 0,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of measured runs.")] = 100,
    warmup: Annotated[int, typer.Option(min=0, metavar="N", help="Warm-up runs.")] = 10,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Batch size.")] = 1,
    image: Annotated[
        Path | None, typer.Option("--image", metavar="IMAGE", help="Use this image as input.")
    ] = None,
    engine: Annotated[EngineFlags, Without("threads")],
    as_json: JsonOption = False,
    flags: ImageFlags,
) -> None:
    """Measure every layer: time by processor, operations, bytes, memory.

    With --html also a timeline, a roofline and charts of memory and of the
    binary share, in a file that needs no network access.
    """
    from phonebit.devices.environment import environment
    from phonebit.html_page import HTML_FILE
    from phonebit.output_files import check_output, write_output
    from phonebit.pages.profile_page import profile_page
    from phonebit.profiling import profile_network

    sources = [file, image, *flags.inputs()]
    if html is not None:
        check_output(html, HTML_FILE, sources, force)
    network = engine.load(file, threads=threads)
    inputs, origin = bench_inputs(network, batch, image, flags)
    with progress("measuring", 10, quiet=as_json) as advance:
        measured = profile_network(
            network, inputs, runs=runs, warmup=warmup, progress=lambda: advance("measuring")
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
        **measured,
        "environment": environment(engine.device),
    }
    if html is not None:
        write_output(html, profile_page(document).encode(), HTML_FILE, sources, force)
    if as_json:
        print_json(document)
        return
    console = output()
    if html is None:
        print_bench(console, document)
        memory = document["memory"]
        busiest = max((layer["live_bytes"], layer["name"]) for layer in document["layers"])
        console.print(
            f"arena {bytes_text(memory['arena_bytes'])} "
            f"(lower bound {bytes_text(memory['lower_bound_bytes'])}, most in "
            f"{escape(busiest[1])})"
        )
    else:
        console.print(f"wrote [bold]{escape(str(html))}[/]", soft_wrap=True)
