"""``import phonebit`` stays light, and what is missing is only missed when it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import phonebit

HEAVY = (
    "tensorflow",
    "tf_keras",
    "keras",
    "larq",
    "torch",
    "h5py",
    "PIL",
    "rich",
    "typer",
    "click",
    "pyopencl",
    "phonebit._runtime",
)


def python(code: str) -> str:
    """Standard output of a fresh interpreter (-P: the installed package, not this folder)."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    listed = python(f"{statement}\nimport json, sys; print(json.dumps(list(sys.modules)))")
    return set(json.loads(listed)) & set(HEAVY)


def test_import_phonebit_loads_nothing_heavy() -> None:
    assert loaded_by("import phonebit") == set()


def test_network_class_loads_no_converter_and_no_command_line() -> None:
    assert loaded_by("import phonebit; phonebit.Network") == set()


def test_convert_loads_no_framework() -> None:
    assert loaded_by("import phonebit; phonebit.convert") <= {"rich"}


def test_help_loads_no_converter_and_no_runtime() -> None:
    loaded = loaded_by("import phonebit.cli.main")
    assert loaded <= {"rich", "typer", "click"}


def test_import_works_without_the_compiled_module_and_load_says_what_is_missing() -> None:
    code = (
        "import sys; sys.modules['phonebit._runtime'] = None\n"
        "import phonebit\n"
        "try:\n"
        "    phonebit.Network.load(sys.executable)\n"
        "except phonebit.DeviceError as error:\n"
        "    print(error)\n"
    )
    text = python(code)
    assert "phonebit._runtime" in text
    assert "pip install" in text


def test_public_names_are_all_there() -> None:
    for name in phonebit.__all__:
        assert getattr(phonebit, name) is not None
        assert name in dir(phonebit)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Netwrok'"):
        phonebit.Netwrok  # type: ignore[attr-defined]  # noqa: B018


def test_version_is_the_distributions() -> None:
    assert phonebit.__version__.split(".")[0].isdigit()
