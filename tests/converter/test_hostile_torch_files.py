"""PyTorch files are data: nothing in them runs, opens a file or reaches the network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from hostile_torch_files import (  # noqa: E402
    CONVERTED,
    MARKER,
    REFUSED,
    hostile_files,
    program,
    saved,
    symbolic_size,
    with_json,
)
from watched import OUTPUT, reports  # noqa: E402

from phonebit.converter.importers.torch.archive import load_program  # noqa: E402
from phonebit.converter.importers.torch.archive_text import checked_program  # noqa: E402
from phonebit.errors import ConversionError  # noqa: E402

FACTORY = "from torch import nn\n\ndef build():\n    return nn.Conv2d(3, 4, 3)\n"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """What a watched process reported of every file."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, content in hostile_files():
        (folder / name).write_bytes(content)
    (folder / "honest.pt2").write_bytes(saved(program()))
    (folder / "bakery.py").write_text(FACTORY)
    commands = {name: arguments(name) for name in (*REFUSED, *CONVERTED)}
    return folder, reports(folder, MARKER, arguments("honest.pt2"), commands)


def arguments(name: str) -> list[str]:
    convert = ["convert", name, "-o", OUTPUT]
    if name.endswith(".pt2"):
        return convert
    return [*convert, "--model", "bakery:build", "--input-shape", "1,3,6,6"]


@pytest.mark.parametrize(("name", "message"), REFUSED.items(), ids=list(REFUSED))
def test_a_hostile_file_is_refused_by_the_entry_and_runs_nothing(
    name: str, message: str, watched: tuple[Path, dict[str, Any]]
) -> None:
    folder, reports = watched
    report = reports[name]
    assert report["events"] == []
    assert report["code"] == 2, report["message"]
    assert message in report["message"].replace("\n", " ")
    assert not list(folder.glob(f"{MARKER}*"))


@pytest.mark.parametrize("name", CONVERTED)
def test_what_a_network_does_not_need_is_never_read(
    name: str, watched: tuple[Path, dict[str, Any]]
) -> None:
    folder, reports = watched
    assert reports[name]["events"] == []
    assert reports[name]["code"] == 0, reports[name]["message"]
    assert not list(folder.glob(f"{MARKER}*"))


def test_the_watch_notices_what_pytorch_itself_would_run(tmp_path: Path) -> None:
    evil = tmp_path / "evil.pt2"
    evil.write_bytes(with_json(saved(program()), symbolic_size))
    code = (
        f"import sys, torch; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from watched import Watch\nwatch = Watch({MARKER!r}); watch.begin()\n"
        f"torch.export.load({str(evil)!r})\nprint(watch.end())\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "os.system" in child.stdout, child.stderr
    assert (tmp_path / MARKER).exists()


def size(text: str) -> Any:
    return checked_program({"x": {"as_expr": {"expr_str": text}}})


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s77', positive=True, integer=True)",
        "Mul(Integer(2), Symbol('s65', positive=True, integer=True))",
        "Max(Integer(1), Add(FloorDiv(Symbol('s0', integer=True), Integer(2)), Integer(-1)))",
        "Pow(Symbol('s0', integer=True), Integer(2))",
        "s0 // 2 + 3 * (s1 - 1)",
        "s0**2 <= 64",
    ],
)
def test_symbolic_sizes_are_arithmetic(text: str) -> None:
    assert size(text) == {"x": {"as_expr": {"expr_str": text}}}


@pytest.mark.parametrize(
    "text",
    [
        "os",
        "().__class__",
        "Symbol.__class__",
        "print(1)",
        "Symbol('s0', commutative=print)",
        "Symbol('s0 if x else y')",
        "Float('lambda: 0')",
        "sympify('1')",
        "[s0 for s0 in s1]",
        "s0[0]",
        "(s0, s1)",
        "f'{s0}'",
        "s0 if s1 else s2",
        "lambda: 0",
        "9**9**9",
        "Pow(Pow(Integer(9), Integer(16)), Integer(16))",
        "Pow(Integer(9), Integer(99999999))",
        "1" * 30,
        "(" * 3000,
        "+".join(["s0"] * 3000),
        "",
    ],
)
def test_nothing_else_is_a_symbolic_size(text: str) -> None:
    with pytest.raises(ConversionError, match="symbolic size"):
        size(text)


def test_a_program_is_loaded_from_what_was_checked(tmp_path: Path) -> None:
    """A .pt2 converts as PyTorch's own reader would have it, symbolic batch included."""
    exported = program()
    (tmp_path / "net.pt2").write_bytes(saved(exported))
    loaded = load_program(tmp_path / "net.pt2")
    image = torch.randn(2, 3, 6, 6)
    assert torch.equal(loaded.module()(image), exported.module()(image))
    assert str(loaded.range_constraints) == str(exported.range_constraints)
