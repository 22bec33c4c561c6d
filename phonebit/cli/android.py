"""``phonebit android``: networks on a phone, over adb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from phonebit.cli.bench_energy import EnergyFlags
from phonebit.cli.bench_text import print_bench
from phonebit.cli.collect_options import CollectFlags, print_collection
from phonebit.cli.console import CommandGroup, output, print_json, progress
from phonebit.cli.options import JsonOption, PrecisionOption
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.android.adb import Adb
    from phonebit.android.phone import Phone
    from phonebit.android.pushing import Pushed

android = CommandGroup("android", "Measure networks on an Android phone over adb.")


@dataclass(frozen=True)
class PhoneFlags:
    """Which phone, and what it gets."""

    serial: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--serial",
            metavar="SERIAL",
            help="Serial number of the phone, if several are connected.",
        ),
    ] = None
    adb: Annotated[
        Path | None,
        typer.Option(
            "--adb",
            metavar="PROGRAM",
            help="Path of adb.",
            show_default="from PATH or ANDROID_HOME",
        ),
    ] = None
    tools: Annotated[
        Path | None,
        typer.Option(
            "--tools",
            metavar="DIR",
            help="Folder of phonebit_bench and phonebit_run (build/android-ABI/runtime/tools).",
        ),
    ] = None


CoresOption = Annotated[
    str, typer.Option("--cores", metavar="CORES", help="any, big, little, or numbers: 4,5,6,7.")
]
HintOption = Annotated[
    Literal["none", "performance", "power"],
    typer.Option("--hint", help="Optimise for performance or power."),
]


@android.add
def push(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help=".pbit files.")] = None,
    *,
    attached: PhoneFlags,
) -> None:
    """Copy the native tools and networks to the phone.

    They go to /data/local/tmp/phonebit. Files already there are not sent again.
    """
    from phonebit.android.pushing import PHONE_FOLDER

    device, phone = _connect(attached)
    pushed = _install(device, phone, attached.tools, files or [])
    output().print(
        f"{escape(phone.text)}: {len(pushed.sent)} files sent ({bytes_text(pushed.sent_bytes)}), "
        f"{len(pushed.known)} there already, in {PHONE_FOLDER}",
        soft_wrap=True,
    )


@android.add
def bench(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    *,
    device: Annotated[
        str,
        typer.Option("--device", metavar="DEVICE", help="auto, cpu, cpu:ISA, gpu, gpu+cpu."),
    ] = "auto",
    threads: Annotated[
        int, typer.Option(min=0, metavar="N", help="CPU threads; 0: one per core.")
    ] = 0,
    cores: CoresOption = "any",
    hint: HintOption = "none",
    precision: PrecisionOption = "exact",
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of measured runs.")] = 100,
    warmup: Annotated[int, typer.Option(min=0, metavar="N", help="Warm-up runs.")] = 10,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Batch size.")] = 1,
    profile: Annotated[bool, typer.Option("--profile", help="Show the time per layer.")] = False,
    cooldown: Annotated[
        float, typer.Option(min=0, metavar="S", help="Seconds to wait before measuring.")
    ] = 0.0,
    energy: EnergyFlags,
    library_path: Annotated[
        str | None,
        typer.Option(metavar="DIRS", help="LD_LIBRARY_PATH on the phone, e.g. /vendor/lib64."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, metavar="S", help="Timeout.")] = 900.0,
    phone_name: Annotated[
        str | None,
        typer.Option(
            "--phone",
            metavar="PHONE",
            help="Show this phone's estimate next to the measurement; see `estimate`.",
            show_default="by the chip, if it is known",
        ),
    ] = None,
    as_json: JsonOption = False,
    attached: PhoneFlags,
) -> None:
    """Measure a network on the phone: latency, throughput, energy.

    Pushes missing files first. The modelled time of a known phone is shown
    next to the measured one.
    """
    from phonebit.android.benching import bench_on_phone
    from phonebit.cli.estimate import total_text
    from phonebit.estimate.network_times import estimate
    from phonebit.estimate.phones import phone_named, phone_of_soc

    energy.check()
    flags = _tool_flags(
        {
            "device": device, "threads": threads, "cores": cores, "hint": hint,
            "precision": precision, "runs": runs, "warmup": warmup, "batch": batch,
            "cooldown-s": cooldown, "profile": profile, "energy": energy.energy,
            "energy-source": energy.energy_source, "energy-seconds": energy.energy_seconds,
            "no-idle": energy.idle is False,
        }
    )  # fmt: skip
    described = None if phone_name is None else phone_named(phone_name)
    connected, phone = _connect(attached)
    described = described or phone_of_soc(phone.soc)
    _install(connected, phone, attached.tools, [file], quiet=as_json)
    with progress("measuring on the phone", None, quiet=as_json) as advance:
        document = bench_on_phone(
            connected, phone, file, flags,
            limit_s=timeout, library_path=library_path, on_message=advance,
        )  # fmt: skip
    modelled = None if described is None else estimate(file, described)
    if as_json:
        estimated = {} if modelled is None else {"estimate": modelled.to_dict()}
        print_json(document | estimated)
        return
    output().print(f"[dim]{escape(phone.text)}[/]", soft_wrap=True)
    print_bench(output(), document)
    if modelled is not None:
        output().print(f"measured: {document['median_ms']:.2f} ms on {escape(document['device'])}")
        for each in modelled.processors:
            output().print(total_text(each), soft_wrap=True)


@android.add
def collect(
    *,
    output_path: Annotated[
        Path, typer.Option("-o", "--output", metavar="SAMPLES", help="A .jsonl file.")
    ],
    orders: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the measurement job and results.",
            show_default="SAMPLES.orders",
        ),
    ] = None,
    wanted: CollectFlags,
    cores: CoresOption = "any",
    hint: HintOption = "none",
    timeout: Annotated[float, typer.Option(min=1, metavar="S", help="Timeout.")] = 6 * 3600.0,
    attached: PhoneFlags,
) -> None:
    """Profile random layers on the phone, for `phonebit train-predictor`.

    The phone keeps its measurements: after a disconnection, run the same
    command again. Keep the phone idle and cool meanwhile.
    """
    from phonebit.android.collecting import collect_on_phone
    from phonebit.output_files import check_output
    from phonebit.planner.predict.samples import SAMPLES_FILE

    check_output(output_path, SAMPLES_FILE)
    plan = wanted.plan()
    connected, phone = _connect(attached)
    _install(connected, phone, attached.tools, [])
    folder = orders or output_path.with_suffix(".orders")
    with progress("measurement job", None) as advance:
        report = collect_on_phone(
            connected, plan, folder, output_path,
            flags=_tool_flags({"cores": cores, "hint": hint}),
            limit_s=timeout, on_file=advance, on_measured=advance,
        )  # fmt: skip
    print_collection(output_path, report)


def _tool_flags(options: Mapping[str, object]) -> list[str]:
    """As native tools take them: values after their names, True alone; False and None not."""
    flags = []
    for name, value in options.items():
        if value is not None and value is not False:
            flags += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return flags


def _connect(attached: PhoneFlags) -> tuple[Adb, Phone]:
    from phonebit.android.adb import Adb
    from phonebit.android.adb_process import find_adb
    from phonebit.android.attached import choose_device
    from phonebit.android.phone import Phone

    found = find_adb(attached.adb)
    connected = Adb(found, choose_device(found, attached.serial))
    return connected, Phone.of(connected.properties())


def _install(
    connected: Adb, phone: Phone, tools: Path | None, files: list[Path], quiet: bool = False
) -> Pushed:
    from phonebit.android.native_tools import native_tools
    from phonebit.android.pushing import install

    programs = native_tools(phone, tools)
    total = len(programs) + len(files)
    with progress("looking at the phone", total, quiet=quiet) as advance:
        return install(connected, programs, files, advance)
