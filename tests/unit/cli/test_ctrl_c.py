"""Ctrl-C ends whatever a command does, with one line and code 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from phonebit.devices.loading import EngineOptions
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.engines import open_measuring_engine
from phonebit.planner.predict.profile import write_profile
from support.cli_process import Cli, command_line
from support.made_up_profile import made_up_profile
from support.planner_times import straight

BEGUN = """
import sys
from phonebit.cli.main import main
print("begun", file=sys.stderr, flush=True)
main()
"""
COMPILING = "compiling kernels"
COMPILED_S = 60.0
"""Far less than the commands take, with one kernel that a slow driver compiles: that cannot be
interrupted."""


class Took(NamedTuple):
    """From a signal to the end of a process."""

    wall_s: float
    processor_s: float


def processor_s(process: subprocess.Popen[str]) -> float:
    """Processor time until now, of all threads."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_to_end(arguments: list[object], cache: Path, line: str, delay_s: float) -> Took:
    """From a signal to the end of a command, which must be code 130 and one line.

    The signal comes a while after a line on standard error.
    """
    command = [sys.executable, "-P", "-c", BEGUN, *map(str, arguments)]
    environment = {**os.environ, "PHONEBIT_CACHE_DIR": str(cache)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        assert any(line in text for text in process.stderr)
        time.sleep(delay_s)
        before = processor_s(process)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        rest = process.stderr.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        took = Took(time.monotonic() - begin, processor_s(process) - before)
        code = process.wait()
    assert (code, rest.splitlines()[-1:]) == (130, ["error: interrupted"]), rest
    assert "Traceback" not in rest
    return took


@pytest.mark.parametrize("delay_s", [0.1, 3.0])
@pytest.mark.parametrize("command", ["selftest", "tune", "collect"])
def test_what_uses_opencl(
    gpu: str, u8_file: Path, tmp_path: Path, command: str, delay_s: float
) -> None:
    arguments: dict[str, list[object]] = {
        "selftest": ["--device", gpu, "--again"],
        "tune": [u8_file, "--device", gpu, "--level", "exhaustive"],
        "collect": ["-o", tmp_path / "samples.jsonl", "--device", f"{gpu}+cpu"],
    }
    took = time_to_end([command, *arguments[command]], tmp_path / "cache", COMPILING, delay_s)
    assert took.wall_s < COMPILED_S


@pytest.mark.parametrize(("method", "delay_s"), [("search", 0.5), ("codl", 0.0)])
def test_planning_in_place(
    gpu: str, tmp_path: Path, cache_folder: Path, method: str, delay_s: float
) -> None:
    """ "search" measures, "codl" predicts first; the file stays as it is."""
    file, profile = tmp_path / "net.pbit", tmp_path / "profile.json"
    file.write_bytes(file_bytes(straight(200)))
    network = open_measuring_engine(file, f"{gpu}+cpu", EngineOptions(threads=1))
    made_up = made_up_profile()
    here = replace(made_up.device, keys={1: network.plan_key})
    write_profile(profile, replace(made_up, device=here))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    arguments = ["--debug", "plan", file, "--cost-model", profile, "-o", file, "--method", method]
    device = ["--device", f"{gpu}+cpu", "--measure"]
    took = time_to_end([*arguments, *device], cache_folder, f"loaded {file}", delay_s)
    assert took.processor_s < 0.5
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def commands(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """Every command, with a word for each of its arguments and options that must be there."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
            continue
        words: list[str] = []
        for param in command.params:
            if param.required:
                option = [param.opts[0]] if param.opts[0].startswith("-") else []
                words += [*option, "bash" if param.name == "shell" else "1"]
        yield (*names, name, *words)


@pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
def test_ctrl_c_is_one_line_and_130_in_every_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, is_json: bool
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperCommand.invoke", interrupted)
    every = list(commands(command_line()))
    assert len(every) > 15
    for words in every:
        has_json = is_json and "--json" in cli(*words, "--help").out
        done = cli(*words, *(["--json"] if has_json else []))
        assert (done.code, done.err) == (130, "error: interrupted\n"), words
        interruption = {"error": {"kind": "Interrupted", "message": "interrupted"}}
        assert (done.document == interruption) if has_json else done.out == "", words


def test_ctrl_c_before_the_command_line_is_there(tmp_path: Path) -> None:
    """While the modules of the command line are imported."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "phonebit", "devices"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
