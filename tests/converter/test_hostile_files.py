"""Files of every other kind are data, too: nothing in them runs, writes or reaches the network."""

from __future__ import annotations

import base64
import io
import json
import marshal
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image
from watched import OUTPUT, reports

MARKER = "phonebit_payload"
SHELL = f"echo > {MARKER}"
FIXTURES = Path(__file__).with_name("fixtures")
CONVERT = ["convert", "honest.h5", "-o", OUTPUT]
COMMANDS = {
    "lambda.h5": (["convert", "lambda.h5", "-o", OUTPUT], "--trust-lambdas"),
    "lambda.keras": (["convert", "lambda.keras", "-o", OUTPUT], "--trust-lambdas"),
    "class.keras": (["convert", "class.keras", "-o", OUTPUT], "system"),
    "link.h5": (["convert", "link.h5", "-o", OUTPUT], "holds no weights"),
    "objects.npy": (["verify", "honest.h5", OUTPUT, "--dataset", "objects.npy"], "file of arrays"),
    "objects.npz": (["verify", "honest.h5", OUTPUT, "--dataset", "objects.npz"], "file of arrays"),
    "network.pbit": (["inspect", "network.pbit"], "network.pbit"),
    "script.png": (["run", OUTPUT, "script.png", "--input-range=0,1"], "unknown format"),
    "damaged.png": (["run", OUTPUT, "damaged.png", "--input-range=0,1"], "damaged.png"),
    "rule.toml": ([*CONVERT, "--preprocessing", "rule.toml"], "rule.toml"),
    "labels.json": ([*CONVERT, "--labels", "labels.json"], "labels"),
}
"""Hostile files: the command that reads each, and what its error message must hold."""


class Payload:
    """An object whose unpickling runs a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (SHELL,)


def evil_lambda() -> dict[str, Any]:
    """A Lambda layer as Keras saves it: marshalled code."""
    code = compile(f"__import__('os').system({SHELL!r})", "lambda", "eval")
    text = base64.b64encode(marshal.dumps(code)).decode()
    function = {"class_name": "__lambda__", "config": {"code": text}}
    config = {"name": "evil", "function": function, "function_type": "lambda"}
    return {"class_name": "Lambda", "module": "keras.layers", "config": config, "build_config": {}}


def with_layer(config: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    config["config"]["layers"].append(layer)
    return config


def write_h5(path: Path) -> None:
    shutil.copy(FIXTURES / "sequential.h5", path)
    with h5py.File(path, "r+") as file:
        config = with_layer(json.loads(file.attrs["model_config"]), evil_lambda())
        file.attrs["model_config"] = json.dumps(config)


def write_link(path: Path) -> None:
    shutil.copy(FIXTURES / "sequential.h5", path)
    with h5py.File(path, "r+") as file:
        del file["model_weights"]
        file["model_weights"] = h5py.ExternalLink("/proc/self/mem", "/")


def write_keras(path: Path, layer: dict[str, Any]) -> None:
    with zipfile.ZipFile(FIXTURES / "sequential.keras") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                content = json.dumps(with_layer(json.loads(content), layer)).encode()
            new.writestr(name, content)


def write_all(folder: Path) -> None:
    shutil.copy(FIXTURES / "sequential.h5", folder / "honest.h5")
    write_h5(folder / "lambda.h5")
    write_link(folder / "link.h5")
    write_keras(folder / "lambda.keras", evil_lambda())
    system = {"class_name": "system", "module": "os", "registered_name": "os>system"}
    write_keras(folder / "class.keras", {**system, "config": {"name": "e", "command": SHELL}})
    objects = np.array([Payload()], dtype=object)
    np.save(folder / "objects.npy", objects, allow_pickle=True)
    np.savez(folder / "objects.npz", x=objects)
    (folder / "network.pbit").write_bytes(b"PBIT" + SHELL.encode() * 40)
    script = (
        f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%{SHELL}) (w) file\nshowpage\n"
    )
    (folder / "script.png").write_text(script)
    image = io.BytesIO()
    Image.new("RGB", (9, 9)).save(image, "PNG")
    (folder / "damaged.png").write_bytes(image.getvalue()[:40])
    (folder / "rule.toml").write_text(f"range = \"__import__('os').system({SHELL!r})\"\n")
    (folder / "labels.json").write_text(json.dumps({"__reduce__": ["os.system", SHELL]}))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """What a watched process reported of every file."""
    folder = tmp_path_factory.mktemp("hostile")
    write_all(folder)
    commands = {name: command for name, (command, _) in COMMANDS.items()}
    return folder, reports(folder, MARKER, CONVERT, commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_hostile_file_is_an_error_and_runs_nothing(
    name: str, watched: tuple[Path, dict[str, Any]]
) -> None:
    folder, found = watched
    report = found[name]
    assert report["events"] == []
    assert report["code"] == 2, report["message"]
    assert COMMANDS[name][1] in " ".join(report["message"].split())
    assert not (folder / MARKER).exists()
