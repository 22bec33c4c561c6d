"""PyTorch files that try to run code, each by a way that PyTorch's own reader leaves open."""

from __future__ import annotations

import importlib
import io
import json
import pickle
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

MARKER = "phonebit_payload"
SHELL = f"echo > {MARKER}"
CODE = f"__import__('os').system({SHELL!r})"
PROGRAM = "models/model.json"
Change = Callable[[dict[str, Any]], None]


class Payload:
    """An object whose unpickling runs a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, (SHELL,)


class Reduced:
    """An object that is unpickled by a call."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return (*self.call, {"a": 1}) if self.call[0] is Built else self.call


class Built:
    """An object whose attributes run a command as they are set."""

    def __setstate__(self, state: Any) -> None:
        import os

        os.system(SHELL)


class Network(nn.Module):
    """A convolution and a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sign(self.conv(x)) * torch.tensor([0.5, 1.5]).sum()


def program() -> torch.export.ExportedProgram:
    """With a symbolic batch, whose size is an expression."""
    batch = {0: torch.export.Dim("batch", min=2, max=64)}
    example = (torch.zeros(2, 3, 6, 6),)
    return torch.export.export(Network().eval(), example, dynamic_shapes=(batch,), strict=False)


def saved(exported: torch.export.ExportedProgram) -> bytes:
    content = io.BytesIO()
    torch.export.save(exported, content)
    return content.getvalue()


def with_entries(archive: bytes, contents: dict[str, bytes]) -> bytes:
    """An archive with other contents, or more entries, by names without its own folder."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(result, "w") as new:
        root = old.namelist()[0].partition("/")[0]
        entries = {info.filename.partition("/")[2]: old.read(info) for info in old.infolist()}
        for name, content in {**entries, **contents}.items():
            new.writestr(f"{root}/{name}", content)
    return result.getvalue()


def with_json(archive: bytes, change: Change, entry: str = PROGRAM) -> bytes:
    """An archive with one JSON text changed."""
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        content = json.loads(old.read(next(n for n in old.namelist() if n.endswith(entry))))
    change(content)
    return with_entries(archive, {entry: json.dumps(content).encode()})


def graph(content: dict[str, Any]) -> dict[str, Any]:
    return content["graph_module"]["graph"]


def node(content: dict[str, Any], target: str) -> dict[str, Any]:
    return next(n for n in graph(content)["nodes"] if n["target"].endswith(target))


def symbolic_size(content: dict[str, Any]) -> None:
    size = graph(content)["tensor_values"]["x"]["sizes"][0]["as_expr"]
    size["expr_str"] = f"({CODE}, {size['expr_str']})[1]"


def guard(content: dict[str, Any]) -> None:
    content["guards_code"] = [f"{CODE} == 0"]


def node_name(content: dict[str, Any]) -> None:
    text = json.dumps(content).replace('"sign"', json.dumps(f"sign=[{CODE}] or sign"))
    content.update(json.loads(text))


def operator(content: dict[str, Any]) -> None:
    called = node(content, "sign.default")
    called["target"] = "torch.os.system"
    called["inputs"] = [{"name": "", "arg": {"as_string": SHELL}, "kind": 1}]


def file_operator(content: dict[str, Any]) -> None:
    called = node(content, "sum.default")
    called["target"] = "torch.ops.aten.from_file.default"
    arguments: dict[str, Any] = {
        "filename": {"as_string": MARKER},
        "shared": {"as_bool": True},
        "size": {"as_int": 1},
    }
    called["inputs"] = [{"name": n, "arg": a, "kind": 1} for n, a in arguments.items()]


def parameter_name(content: dict[str, Any]) -> None:
    text = json.dumps(content).replace('"conv.weight"', json.dumps(f'conv.x", {CODE}, "'))
    content.update(json.loads(text))


def tree(content: dict[str, Any], kind: str, context: Any) -> None:
    signature = content["graph_module"]["module_call_graph"][0]["signature"]
    spec = json.loads(signature["in_spec"])
    leaf = {"type": kind, "context": json.dumps(context), "children_spec": []}
    spec[1]["children_spec"][1] = leaf
    signature["in_spec"] = json.dumps(spec)


def default_factory(content: dict[str, Any]) -> None:
    context = {"default_factory_module": MARKER, "default_factory_name": "x", "dict_context": []}
    tree(content, "collections.defaultdict", context)


def enum_context(content: dict[str, Any]) -> None:
    tree(content, "builtins.dict", [{"__enum__": True, "fqn": f"{MARKER}:x", "name": "x"}])


def pickled(content: dict[str, Any]) -> None:
    next(iter(content["config"].values()))["use_pickle"] = True


def opaque(content: dict[str, Any]) -> None:
    next(iter(content["config"].values()))["path_name"] = "opaque_obj_0"


def archive_before_2_8(exported: torch.export.ExportedProgram, constants: bytes = b"") -> bytes:
    from torch._export.serde.schema import SCHEMA_VERSION
    from torch._export.serde.serialize import serialize

    parts = serialize(exported)
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        archive.writestr("version", ".".join(map(str, SCHEMA_VERSION)))
        archive.writestr("serialized_exported_program.json", parts.exported_program)
        archive.writestr("serialized_state_dict.pt", parts.state_dict)
        archive.writestr("serialized_constants.pt", constants or parts.constants)
        archive.writestr("serialized_example_inputs.pt", pickle.dumps(Payload()))
    return result.getvalue()


SIZE = f"{PROGRAM}: graph_module: graph: tensor_values: x: sizes"
CONSTANTS = "data/constants/model_constants_config.json"
NO_TENSORS = "holds other objects than tensors"
REFUSED = {
    "size.pt2": SIZE,
    "size.pth": SIZE,
    "size.bin": SIZE,
    "size.safetensors": "size.safetensors: ",
    "node_name.pt2": "outputs: as_tensor: name",
    "operator.pt2": "nodes: target",
    "file_operator.pt2": "nodes: target",
    "parameter_name.pt2": "parameter_name",
    "default_factory.pt2": "in_spec",
    "enum_context.pt2": "in_spec",
    "pickled.pt2": CONSTANTS,
    "opaque.pt2": CONSTANTS,
    "legacy_weights.pt2": "data/weights/model.pt",
    "old.pt2": "serialized_constants.pt",
    "zip.pth": NO_TENSORS,
    "legacy.pth": NO_TENSORS,
    "raw.pt": NO_TENSORS,
    "pickle.safetensors": "pickle.safetensors: ",
    "bomb.pth": "unpacks to more than the file holds",
    "script.pt": "is a TorchScript archive, which is code and is never run",
}
"""Hostile files, and what the error message must hold."""
CONVERTED = (
    *("guard.pt2", "old_example.pt2", "inputs.pt2", "compiled.pt2"),
    *("eval.pth", "popen.pth", "build.pth", "import.pth", "legacy_eval.pth"),
)
"""Those whose payload stands where nothing is read."""


def hostile_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of all of them."""
    good = saved(program())
    payload = pickle.dumps(Payload())
    evil = with_json(good, symbolic_size)
    for suffix in (".pt2", ".pth", ".bin", ".safetensors"):
        yield f"size{suffix}", evil
    for change in (
        node_name, operator, file_operator, parameter_name, default_factory, enum_context, guard,
    ):  # fmt: skip
        yield f"{change.__name__}.pt2", with_json(good, change)
    for change in (pickled, opaque):
        objects = {"data/constants/tensor_0": payload, "data/constants/opaque_obj_0": payload}
        yield f"{change.__name__}.pt2", with_entries(with_json(good, change, CONSTANTS), objects)
    yield "legacy_weights.pt2", with_entries(good, {"data/weights/model.pt": payload})
    yield "inputs.pt2", with_entries(good, {"data/sample_inputs/model.pt": payload})
    library = b"\x7fELF" + MARKER.encode()
    yield "compiled.pt2", with_entries(good, {"data/aotinductor/model/model.so": library})
    yield "old.pt2", archive_before_2_8(program(), pickled_tensors())
    yield "old_example.pt2", archive_before_2_8(program())
    yield "zip.pth", pickled_tensors()
    yield "legacy.pth", pickled_tensors(_use_new_zipfile_serialization=False)
    yield "raw.pt", payload
    for name, function, arguments in (
        ("eval", eval, (CODE,)),
        ("popen", subprocess.Popen, (SHELL, -1, None, None, None, None, None, True, True)),
        ("import", importlib.import_module, (MARKER,)),
        ("build", Built, ()),
    ):
        yield f"{name}.pth", parameters_and(Reduced(function, arguments))
    code = Reduced(eval, (CODE,))
    yield "legacy_eval.pth", parameters_and(code, _use_new_zipfile_serialization=False)
    yield "pickle.safetensors", payload
    yield "bomb.pth", bomb()
    script = io.BytesIO()
    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), script)
    yield "script.pt", script.getvalue()


def bomb() -> bytes:
    """A checkpoint whose 20 kB unpack to 20 MB."""
    content = io.BytesIO()
    torch.save({"conv.weight": torch.zeros(5_000_000)}, content)
    result = io.BytesIO()
    with (
        zipfile.ZipFile(content) as old,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return result.getvalue()


def parameters_and(extra: Any, **options: Any) -> bytes:
    """The checkpoint of a convolution, with another object next to it."""
    content = io.BytesIO()
    torch.save({"best": extra, "state_dict": nn.Conv2d(3, 4, 3).state_dict()}, content, **options)
    return content.getvalue()


def pickled_tensors(**options: Any) -> bytes:
    """A checkpoint with a payload in place of a tensor."""
    content = io.BytesIO()
    torch.save({"lifted_tensor_0": Payload()}, content, **options)
    return content.getvalue()
