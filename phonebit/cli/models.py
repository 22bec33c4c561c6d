"""``phonebit models``: the networks that come with PhoneBit, trained or with seeded weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import ForceOption, JsonOption, WeightType
from phonebit.display import bytes_text, count_text
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError
from phonebit.layer_info import shape_text

if TYPE_CHECKING:
    from phonebit.models.networks import BuiltForm, NetworkFacts
    from phonebit.models.trained import TrainedNetwork


NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="The network to write.", show_default="list all"),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="The .pbit file to write.", show_default="NAME.pbit"
    ),
]
FormOption = Annotated[
    Literal["binary", "float"] | None,
    typer.Option("--form", help="float: the full-precision twin."),
]
FloatWeightsOption = Annotated[
    WeightType | None,
    typer.Option(
        "--float-weights", help="Storage of full-precision weights: f16, i8: 2 or 1 bytes each."
    ),
]


def models(
    name: NameArgument = None,
    to: OutputOption = None,
    form: FormOption = None,
    float_weights: FloatWeightsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the networks of PhoneBit, or write one: trained, or with seeded weights."""
    from phonebit.models.networks import NETWORKS
    from phonebit.models.trained import TRAINED

    if name in TRAINED:
        if form is not None or float_weights is not None:
            raise InputError(f"{name} is trained: it has one form, and its own weights")
        _write_trained(name, to or Path(f"{name}.pbit"), force, as_json)
        return
    if name is not None:
        if name not in NETWORKS:
            known = ", ".join((*TRAINED, *NETWORKS))
            raise InputError("no such network", expected=f"one of {known}", got=repr(name))
        _write(name, to, form or "binary", float_weights or "f32", force, as_json)
        return
    if to is not None or form is not None or float_weights is not None:
        raise InputError("options for a file, but no network", hint="say which: NAME -o OUT")
    facts = {known: definition.facts() for known, definition in NETWORKS.items()}
    if as_json:
        trained = {known: asdict(entry) for known, entry in TRAINED.items()}
        print_json(trained | {known: _as_dict(entry) for known, entry in facts.items()})
    else:
        output().print(_trained_table(TRAINED), "")
        output().print(_table(facts))


def _write_trained(name: str, target: Path, force: bool, as_json: bool) -> None:
    from phonebit.format.writer import PBIT_FILE
    from phonebit.models.trained import TRAINED, trained_file
    from phonebit.output_files import write_output

    content = trained_file(name).read_bytes()
    write_output(target, content, PBIT_FILE, replace_any=force)
    network = TRAINED[name]
    if as_json:
        facts = asdict(network)
        print_json({**facts, "output_path": str(target), "size_after_bytes": len(content)})
        return
    size = bytes_text(len(content))
    output().print(
        f"wrote [bold]{escape(str(target))}[/], {size}: {network.result} on {network.task}",
        soft_wrap=True,
    )


def _write(
    name: str,
    to: Path | None,
    form: BuiltForm,
    float_weights: WeightType,
    force: bool,
    as_json: bool,
) -> None:
    from phonebit.models.networks import build

    target = to or Path(f"{Path(name).name}.pbit")
    with progress(f"building {name}", None, quiet=as_json):
        report = build(name, target, form, float_weights, replace_any=force)
    if as_json:
        print_json(report.to_dict())
        return
    console = output()
    console.print(report.render())
    size = bytes_text(report.size_after_bytes)
    console.print(f"wrote [bold]{escape(str(target))}[/], {size}", soft_wrap=True)


def _as_dict(facts: NetworkFacts) -> dict[str, Any]:
    return {**asdict(facts), "binary_mac_share": facts.binary_mac_share}


def _trained_table(trained: dict[str, TrainedNetwork]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("trained network", no_wrap=True, style="bold")
    table.add_column("input", no_wrap=True)
    table.add_column("result", justify="right", no_wrap=True)
    for title in ("on", "recipe"):
        table.add_column(title, overflow="fold")
    for name, entry in trained.items():
        table.add_row(name, entry.input, entry.result, entry.task, entry.recipe)
    return table


def _table(facts: dict[str, NetworkFacts]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("seeded weights", no_wrap=True, style="bold")
    for title in ("input", "output"):
        table.add_column(title, no_wrap=True)
    for title in ("parameters", "MACs", "binary"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for name, entry in facts.items():
        table.add_row(
            name,
            f"{entry.input_dtype} {shape_text(entry.input_shape)}",
            shape_text(entry.output_shape),
            count_text(entry.parameters),
            count_text(entry.macs),
            f"{100 * entry.binary_mac_share:.1f} %",
            escape(entry.source),
        )
    return table
