"""``phonebit doctor``: what works here, as text that can be pasted into an issue."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer
from rich.console import Console

from phonebit.cli.console import EXIT_CHECK_FAILED, output, print_json
from phonebit.cli.demo import convert_demo, model_folder
from phonebit.cli.devices import machine
from phonebit.cli.options import JsonOption
from phonebit.display import printable
from phonebit.errors import DeviceError

PROGRAMS: Final = ("c++", "g++", "clang++", "ld", "cmake", "ninja", "adb")
FRAMEWORKS: Final = ("tensorflow", "keras", "tf-keras", "larq", "brevitas", "onnxruntime")
"""What networks come from or are checked with; no extra installs them."""
DEVELOPERS_EXTRAS: Final = ("test", "docs", "dev")
VARIABLES: Final = re.compile(
    "(PHONEBIT|OCL|POCL|PYOPENCL)_.*|CUDA_VISIBLE_DEVICES|ANDROID_(HOME|NDK.*)|CXX|OMP_NUM_THREADS"
)


def doctor(as_json: JsonOption = False) -> None:
    """Show what works here: versions, compilers, devices, energy sources.

    The demo's network runs on each of them; `selftest` tests all kernels of an
    OpenCL device. The text is made for reports of problems.
    Exit code 1: the runtime cannot be loaded, or a device gives other results.
    """
    import phonebit

    document: dict[str, Any] = {
        "phonebit": phonebit.__version__,
        "folder": str(Path(phonebit.__file__).parent),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _required(""),
        "extras": {name: _required(name) for name in _extras()},
        "frameworks": _versions(FRAMEWORKS),
        "programs": {name: text for name in PROGRAMS if (text := _program_version(name))},
        "environment": {k: v for k, v in sorted(os.environ.items()) if VARIABLES.fullmatch(k)},
        "runtime_error": None,
        "machine": None,
        "demo": {},
    }
    try:
        document["machine"] = machine()
    except DeviceError as error:
        document["runtime_error"] = str(error)
    console = output()
    if not as_json:  # at once: a driver may end the process
        _print(console, _lines(document))
    for device, outcome in _demo_runs(document["machine"]):
        document["demo"][device] = outcome
        if not as_json:
            _print(console, _demo_lines(device, outcome))
    if as_json:
        print_json(document)
    if document["runtime_error"] or any(outcome["error"] for outcome in document["demo"].values()):
        raise typer.Exit(EXIT_CHECK_FAILED)


def _requirements() -> list[tuple[str, str]]:
    """Package and extra ("" for none) of each requirement of this installation."""
    try:
        texts = requires("phonebit") or []
    except PackageNotFoundError:  # a bare source tree
        return []
    found = []
    for text in texts:
        extra = re.search(r"extra == ['\"]([\w-]+)", text)
        found.append((re.split(r"[^\w.-]", text, maxsplit=1)[0], extra[1] if extra else ""))
    return found


def _extras() -> list[str]:
    extras = dict.fromkeys(extra for _, extra in _requirements())
    return [extra for extra in extras if extra and extra not in DEVELOPERS_EXTRAS]


def _required(extra: str) -> dict[str, str | None]:
    names = [name for name, of in _requirements() if of == extra]
    return {name: _versions([name]).get(name) for name in names}


def _versions(names: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Of those packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _program_version(name: str) -> str:
    """The line in which a program tells its version; "" if it is not there or does not run."""
    path = shutil.which(name)
    try:
        command = [path or name, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return next(iter(done.stdout.splitlines()), "")


def _demo_runs(here: dict[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the demo's network does on each device: warnings, and what is wrong or None."""
    from phonebit.network import Network
    from phonebit.network.random_inputs import random_inputs

    if here is None:
        return
    isas = [f"cpu:{isa['name']}" for isa in here["isas"] if isa["supported"]]
    devices = [*reversed(isas), *(device["device"] for api in here["apis"] for device in here[api])]
    expected, origin = None, ""
    folder = model_folder()
    with tempfile.TemporaryDirectory(prefix="phonebit-") as scratch:
        file = Path(scratch) / "demo.pbit"
        convert_demo(folder, file)
        for device in devices:
            error = None
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    with Network.load(file, device=device) as network:
                        scores = network(random_inputs(network.inputs, 4)[network.inputs[0].name])
                    if expected is None:
                        expected, origin = scores, device
                    if not np.allclose(scores, expected, atol=1e-4):
                        error = f"results differ from those of {origin}"
                except DeviceError as failure:
                    error = str(failure)
            yield device, {"error": error, "warnings": [str(one.message) for one in caught]}


def _print(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    for name, text in lines:
        for line in text.strip().splitlines() or [""]:
            shown = printable(line.strip().replace(str(Path.home()), "~"))
            console.print(f"{name:<12} {shown}", markup=False, soft_wrap=True)


def _lines(document: dict[str, Any]) -> list[tuple[str, str]]:
    """A name and a text for each line."""
    lines = [
        ("phonebit", f"{document['phonebit']}, {document['folder']}"),
        ("python", f"{document['python']}, {document['platform']}"),
        ("packages", _packages_text(document["packages"])),
    ]
    for extra, packages in document["extras"].items():
        is_there = all(packages.values())
        hint = "" if is_there else f" (pip install 'phonebit[{extra}]')"
        lines.append((f"[{extra}]", _packages_text(packages) + hint))
    lines.append(("frameworks", _packages_text(document["frameworks"]) or "none"))
    lines += [(name, text) for name, text in document["programs"].items()]
    lines += [("environment", f"{key}={value}") for key, value in document["environment"].items()]
    if document["machine"] is None:
        return [*lines, ("runtime", document["runtime_error"])]
    return lines + _machine_lines(document["machine"])


def _packages_text(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found or 'is missing'}" for name, found in packages.items())


def _machine_lines(here: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("runtime", f"{here['runtime_version']}, cache {here['cache_folder'] or 'none'}"),
        ("cpu", f"{here['machine']}, {here['cores']} usable cores; {here['serving']}"),
    ]
    lines += [(api, error) for api in here["apis"] if (error := here[f"{api}_error"])]
    for device in (device for api in here["apis"] for device in here[api]):
        facts = (device[fact] for fact in ("name", "platform", "version", "driver_version"))
        lines.append((device["device"], ", ".join(facts)))
    for finding in here["energy"]:
        names = ", ".join(f"{s['name']} ({s['description']})" for s in finding["sources"])
        lines.append(("energy", f"{finding['kind']}: {names or finding['absent']}"))
    return lines


def _demo_lines(device: str, outcome: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [(device, f"runs the demo's network: {outcome['error'] or 'right'}")]
    return lines + [(device, f"warning: {text}") for text in outcome["warnings"]]
