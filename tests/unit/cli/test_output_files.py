"""No command and no function destroys what it reads, or a file of another kind than it writes."""

from __future__ import annotations

import ast
import os
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import typer
from PIL import Image

import phonebit
from phonebit.cli.main import app
from phonebit.converter.writer import to_bytes
from phonebit.devices.tuning_store import export_tuning
from phonebit.errors import InputError
from phonebit.models.networks import build
from phonebit.output_files import FileKind, check_output, write_output
from phonebit.planner.predict.profile import write_profile
from phonebit.planner.predict.samples import begin_samples
from support.cli_process import Cli
from support.detector_graph import cell_detector
from support.made_up_profile import made_up_profile

NOTE = FileKind("a note", lambda head: head.startswith(b"note"))
NOTES = b"# what I must not forget\nbuy milk, and more than six words a line\n"
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "itself": lambda _file, _link: None,
    "symbolic link": lambda file, link: link.symlink_to(file),
    "hard link": lambda file, link: link.hardlink_to(file),
}

# --- one path ---


@pytest.mark.parametrize("way", LINKS)
@pytest.mark.parametrize("replace_any", [False, True])
def test_an_input_is_no_output_by_any_name(tmp_path: Path, way: str, replace_any: bool) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    given.write_bytes(b"note")
    LINKS[way](given, other)
    output = given if way == "itself" else other
    for path in (output, str(output), Path(os.path.relpath(output))):
        with pytest.raises(InputError, match="one of the inputs"):
            write_output(path, b"note 2", NOTE, [None, given], replace_any)
    assert given.read_bytes() == output.read_bytes() == b"note"


def test_an_output_after_a_linked_folder_is_the_same_output(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="one of the inputs"):  # where neither has a file yet
        check_output(tmp_path / "linked" / "x", NOTE, [tmp_path / "real" / "x"])


def test_only_files_of_the_kind_and_empty_ones_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for old in (None, b"", b"note 1"):
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)
        write_output(path, b"note 2", NOTE)
        assert path.read_bytes() == b"note 2"
    path.write_bytes(NOTES)
    with pytest.raises(InputError, match=r"file: not a note, .* --force"):
        write_output(path, b"note 2", NOTE)
    assert path.read_bytes() == NOTES
    write_output(path, b"note 2", NOTE, replace_any=True)
    assert path.read_bytes() == b"note 2"


def test_folders_devices_and_pipes_are_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, Path(), Path("/"), Path("/dev/null"), pipe):
        for replace_any in (False, True):
            with pytest.raises(InputError, match="not a file to write to"):
                check_output(path, NOTE, replace_any=replace_any)


# --- commands ---


@dataclass(frozen=True)
class Roles:
    """What the paths and texts that a command takes are: its parameters with their flags.

    ``outputs`` are single files, ``folders`` are written into; an input's flag is "" where it is an
    argument. ``updated`` are inputs that an output may be.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    updated: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


IMAGE = ("range", "mean", "std", "color", "resize", "interpolation")
PHONE = {"adb": "--adb", "tools": "--tools"}
COMMANDS = {
    "convert": Roles(
        {"source": "", "labels": "--labels", "detection": "--detection", "plugin": "--plugin",
         "preprocessing": "--preprocessing"},
        {"to": "-o"}, texts=("model", "input_shape", *IMAGE),
    ),
    "inspect": Roles({"file": ""}, {"html": "--html", "svg": "--svg"}),
    "run": Roles(
        {"file": "", "images": "", "preprocessing": "--preprocessing"}, {"to": "-o"},
        texts=("device", *IMAGE), more=("--device", "cpu"),
    ),
    "verify": Roles(
        {"source": "", "file": "", "dataset": "--dataset", "plugin": "--plugin"},
        {"html": "--html"}, texts=("input_range", "device", "model", "input_shape"),
    ),
    "batch": Roles(
        {"file": "", "preprocessing": "--preprocessing"}, folders={"to": "-o"},
        texts=("source", "reader", "column", "key", "address", "device", *IMAGE),
    ),
    "bench": Roles(
        {"file": "", "image": "--image", "preprocessing": "--preprocessing"},
        texts=("device", "energy_source", *IMAGE),
    ),
    "eval": Roles(
        {"file": "", "data": "", "source": "--source", "images": "--images", "plugin": "--plugin",
         "preprocessing": "--preprocessing"},
        texts=("device", "model", "input_shape", *IMAGE),
    ),
    "profile": Roles(
        {"file": "", "image": "--image", "preprocessing": "--preprocessing"}, {"html": "--html"},
        texts=("device", *IMAGE),
    ),
    "compare": Roles({"first": "", "second": ""}),
    "export": Roles({"file": ""}, {"target": "-o"}),
    "estimate": Roles({"file": ""}, texts=("phone",)),
    "completion": Roles(),
    "devices": Roles(),
    "doctor": Roles(),
    "kernels list": Roles(),
    "kernels show": Roles({"file": ""}, texts=("layer", "device")),
    "selftest": Roles(texts=("device",)),
    "tune": Roles({"file": ""}, {"export": "--export"}, texts=("device",)),
    "collect": Roles(
        {"results": "--results"}, {"output_path": "-o"}, {"orders": "--orders"},
        texts=("device", "threads"), more=("--resume", "--orders", "absent"),
    ),
    "train-predictor": Roles({"samples": ""}, {"output_path": "-o"}),
    "plan": Roles(
        {"file": "", "cost_model": "--cost-model"}, {"output_path": "-o"},
        updated=("file",), texts=("device",),
    ),
    "demo": Roles(texts=("device",)),
    "web": Roles({"files": ""}, folders={"target": "-o"}),
    "models": Roles({}, {"to": "-o"}, texts=("name",), more=("vgg_small",)),
    "android push": Roles({"files": "", **PHONE}, texts=("serial",)),
    "android bench": Roles(
        {"file": "", **PHONE},
        texts=("device", "cores", "energy_source", "library_path", "phone_name", "serial"),
    ),
    "android collect": Roles(
        PHONE, {"output_path": "-o"}, {"orders": "--orders"}, texts=("threads", "cores", "serial")
    ),
}  # fmt: skip
PAIRS = [
    (command, output, given)
    for command, roles in COMMANDS.items()
    for output in roles.outputs
    for given in roles.inputs
    if not (given in roles.updated and output == "output_path")
]


def commands(
    group: typer.Typer, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Callable[..., object]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        yield " ".join([*path, name]), command.callback
    for sub in group.registered_groups:
        assert sub.typer_instance is not None
        yield from commands(sub.typer_instance, (*path, str(sub.typer_instance.info.name)))


def is_path_or_text(hint: object) -> bool:
    return hint in (str, Path) or any(map(is_path_or_text, typing.get_args(hint)))


@pytest.mark.parametrize(("name", "callback"), list(commands(app)))
def test_of_every_path_it_is_known_if_it_is_written(
    name: str, callback: Callable[..., object]
) -> None:
    hints = typing.get_type_hints(callback)
    taken = {
        parameter
        for parameter, hint in hints.items()
        if is_path_or_text(hint) and typing.get_origin(hint) is not typing.Literal
    }
    roles = COMMANDS[name]
    assert taken == {*roles.inputs, *roles.outputs, *roles.folders, *roles.texts}
    # Where a file may be replaced, --force says so; where lines are added to one, nothing does.
    replaces = bool(roles.outputs) and name not in ("tune", "collect", "android collect")
    assert ("force" in hints) == replaces


@pytest.fixture
def files(checkpoint: Path, images: list[Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a sound input of a command; all names have a suffix that each output accepts."""

    def make(command: str, parameter: str) -> Path:
        path = tmp_path / f"{parameter}.png"
        if parameter == "cost_model":
            write_profile(path, made_up_profile())
        elif parameter in ("labels", "detection", "plugin", "preprocessing", "results", *PHONE):
            path.write_text("range = [0, 1]\n")
        elif parameter == "images":
            Image.new("RGB", (64, 64)).save(path)
        elif parameter == "source":
            path = path.with_suffix(".h5")
            path.write_bytes(checkpoint.read_bytes())
        elif parameter == "samples":
            path.write_text('{"device": {}}\n')
        else:
            path.write_bytes(to_bytes(cell_detector()))
        return path

    return make


@pytest.mark.parametrize("way", LINKS)
@pytest.mark.parametrize(("command", "output", "given"), PAIRS)
def test_no_command_writes_over_its_input(
    cli: Cli,
    files: Callable[[str, str], Path],
    tmp_path: Path,
    command: str,
    output: str,
    given: str,
    way: str,
) -> None:
    roles = COMMANDS[command]
    wanted = [
        name for name, flag in roles.inputs.items() if not flag or name in (given, "cost_model")
    ]
    paths = {name: files(command, name) for name in wanted}
    before = {path: path.read_bytes() for path in paths.values()}
    target = paths[given]
    if way != "itself":
        target = tmp_path / "link.png"
        LINKS[way](paths[given], target)
    args: list[object] = [*command.split(), *roles.more]
    for name, path in paths.items():
        args += [roles.inputs[name], path] if roles.inputs[name] else [path]
    args += [roles.outputs[output], target]
    can_be_forced = command not in ("tune", "collect", "android collect")
    for more in ((), ("--force",)) if can_be_forced else ((),):
        message = cli.refused(*args, *more)
        assert target.name in message
        assert "inputs" in message or ("so it is not replaced" in message and not can_be_forced)
    assert {path: path.read_bytes() for path in before} == before
    assert target.read_bytes() == before[paths[given]]


OUTPUTS = [(command, output) for command, roles in COMMANDS.items() for output in roles.outputs]


@pytest.mark.parametrize(("command", "output"), OUTPUTS)
def test_no_command_writes_over_another_kind_of_file(
    cli: Cli, files: Callable[[str, str], Path], tmp_path: Path, command: str, output: str
) -> None:
    roles = COMMANDS[command]
    target = tmp_path / "notes.png"
    target.write_bytes(NOTES)
    args: list[object] = [*command.split(), *roles.more]
    for name, flag in roles.inputs.items():
        if not flag or name == "cost_model" or command == "collect":
            args += [flag, files(command, name)] if flag else [files(command, name)]
    args += [roles.outputs[output]]
    assert "notes.png: not a" in cli.refused(*args, target)
    assert target.read_bytes() == NOTES
    if command != "run":  # draws into folders
        assert "not a file to write to" in cli.refused(*args, tmp_path)
        assert "not a file to write to" in cli.refused(*args, ".")


@pytest.mark.parametrize(
    ("command", "output"), [("convert", "to"), ("run", "to"), ("plan", "output_path"),
                            ("models", "to"), ("verify", "html")],
)  # fmt: skip
def test_force_replaces_another_kind_of_file(
    cli: Cli,
    files: Callable[[str, str], Path],
    f32_file: Path,
    tmp_path: Path,
    command: str,
    output: str,
) -> None:
    roles = COMMANDS[command]
    target = tmp_path / "notes.png"
    target.write_bytes(NOTES)
    args: list[object] = [*command.split(), *roles.more]
    for name, flag in roles.inputs.items():
        path = f32_file if (command, name) == ("verify", "file") else files(command, name)
        if not flag or name == "cost_model":
            args += [flag, path] if flag else [path]
    if command == "verify":
        args += ["--samples", 1, "--interpreter", "--device", "cpu"]
    done = cli(*args, roles.outputs[output], target, "--force")
    assert done.code == 0, done
    assert target.read_bytes() != NOTES


def test_the_path_next_to_the_source_is_checked_too(
    cli: Cli, checkpoint: Path, tmp_path: Path
) -> None:
    source = tmp_path / "net.h5"
    source.write_bytes(checkpoint.read_bytes())
    neighbour = source.with_suffix(".pbit")
    neighbour.write_bytes(NOTES)
    assert "net.pbit: not a .pbit file" in cli.refused("convert", source)
    assert neighbour.read_bytes() == NOTES
    misnamed = tmp_path / "other.pbit"
    misnamed.write_bytes(checkpoint.read_bytes())
    assert "one of the inputs" in cli.refused("convert", misnamed)
    assert misnamed.read_bytes() == checkpoint.read_bytes()


def test_a_measurement_job_leaves_other_files_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(NOTES)
    assert "plan.json" in cli.refused("collect", "--orders", tmp_path, "--samples", 1)
    (tmp_path / "probe.pbit").write_bytes(NOTES)
    assert "probe.pbit" in cli.refused("collect", "--orders", tmp_path, "--samples", 1)
    for name in ("plan.json", "probe.pbit"):
        assert (tmp_path / name).read_bytes() == NOTES
    assert "exists" in cli.refused("collect", "--orders", tmp_path / "plan.json", "--samples", 1)


def test_images_are_not_drawn_over_images(
    cli: Cli, files: Callable[[str, str], Path], tmp_path: Path
) -> None:
    network, image = files("run", "file"), files("run", "images")
    before = image.read_bytes()
    for folder in (tmp_path, tmp_path / "." / ".." / tmp_path.name):
        refused = cli.refused("run", network, image, "-o", folder, "--device", "cpu", "--force")
        assert "one of the inputs" in refused
    assert image.read_bytes() == before


# --- functions ---


def test_functions_refuse_what_commands_refuse(checkpoint: Path, tmp_path: Path) -> None:
    source, notes = tmp_path / "net.h5", tmp_path / "notes"
    source.write_bytes(checkpoint.read_bytes())
    notes.write_bytes(NOTES)
    with pytest.raises(InputError, match="one of the inputs"):
        phonebit.convert(source, source, replace_any=True)
    with pytest.raises(InputError, match=r"not a \.pbit file"):
        phonebit.convert(source, notes)
    with pytest.raises(InputError, match=r"not a \.pbit file"):
        build("vgg_small", notes)
    with pytest.raises(InputError, match="one of the inputs"):
        write_profile(source, made_up_profile(), inputs=[source], replace_any=True)
    with pytest.raises(InputError, match="not a device profile"):
        write_profile(notes, made_up_profile())
    with pytest.raises(InputError, match="not a tuning table"):
        export_tuning(notes, ["op * * * * kernel"])
    for content in (NOTES, b"one line without an end", b"\xff\xfe"):
        notes.write_bytes(content)
        with pytest.raises(InputError, match="not a file of samples"):
            begin_samples(notes, made_up_profile().device)
        assert notes.read_bytes() == content
    assert source.read_bytes() == checkpoint.read_bytes()


def test_a_first_line_of_samples_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    for rest in (b"", b'{"de', b'{"device": {"keys'):
        path.write_bytes(rest)
        begin_samples(path, made_up_profile().device)
        assert path.read_bytes().endswith(b"}\n")


WRITES = {"write_text", "write_bytes", "write_atomically", "savefig", "save", "rename", "touch"}


def is_write(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    modes = [str(arg.value) for arg in given if isinstance(arg, ast.Constant)]
    return name in WRITES or (
        name in ("open", "fdopen") and any(set(m) & set("wax+") for m in modes)
    )


def test_nothing_else_in_the_package_writes_files() -> None:
    root = Path(__file__).parents[3]
    places = {
        str(path.relative_to(root))
        for folder in ("phonebit", "converter")
        for path in (root / folder).rglob("*.py")
        if any(map(is_write, ast.walk(ast.parse(path.read_text()))))
    }
    assert places == {
        "phonebit/output_files.py",
        "phonebit/batch/results.py",  # new files in a folder of its own
        "phonebit/batch/predictor.py",  # into a temporary folder
        "phonebit/devices/tuning_store.py",  # the cache, and tables that are checked first
        "phonebit/litert/interpreters.py",  # into a temporary folder
        "phonebit/planner/predict/samples.py",  # adds lines
        "phonebit/planner/measure/engines.py",  # into a temporary folder
        "phonebit/torch/operator.py",  # into a temporary folder
        "phonebit/verification/decisions.py",  # into a temporary folder
        "phonebit/cli/detect.py",
        "phonebit/pages/site.py",  # into a folder that is empty or a site
    }
