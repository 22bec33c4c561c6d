"""docs/extending.md: the files of each checklist exist, and its example occurs in no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from phonebit.converter.ir import Graph
from phonebit.converter.ops.epilogue.base import EpilogueOp
from phonebit.converter.ops.epilogue.functions import Function, Names
from phonebit.converter.passes.base import Pass, PassLog
from phonebit.converter.passes.pipeline import PASSES, run_pipeline
from support.golden import tiny_classifier

ROOT = Path(__file__).parents[3]
FOLDERS = ("bnn_kernels", "converter", "cpu_backend", "phonebit", "runtime")
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")

EXAMPLES = {
    "An operator": (
        r"kSelectChannels|SELECT_CHANNELS|SelectChannels|select_channels",
        {  # use it, or speak of it
            "bnn_kernels/README.md",
            "converter/importers/torch/layout.py",
            "converter/importers/keras/plugin.py",
            "converter/importers/torch/recurrent.py",
            "converter/passes/recognise_products.py",
            "phonebit/planner/measure/sampled_files.py",
            "phonebit/planner/measure/sampling.py",
        },
    ),
    "An epilogue operation": (
        r"\bSigmoid\b|SIGMOID\b|kSigmoid\b|FUNCTION\(sigmoid|\"sigmoid\"",
        {
            "bnn_kernels/README.md",
            "converter/importers/keras/pointwise.py",
            "converter/importers/keras/qkeras.py",
            "converter/importers/keras/recurrent.py",
            "converter/importers/torch/curves.py",
            "converter/importers/onnx/rules/recurrent.py",
            "converter/importers/torch/recurrent.py",
            "converter/importers/keras/plugin.py",
        },
    ),
    "A CPU kernel": (r"kCarrySaveConv_avx512|binary_conv_carry_save|saves_carries", set()),
    "A CPU instruction set": (
        r"kAvx2|k[A-Z]\w+_avx2\b|simd/avx2|phonebit_isa\(AVX2",
        {"cpu_backend/avx2/binary_conv_dense.cpp", "cpu_backend/avx2/binary_conv_pair_table.cpp"},
    ),
    "An OpenCL kernel": (r"bconv2d_lanes", set()),
    "A GPU API": (
        r"#include \"opencl/|std::shared_ptr<gpu::Device>|USES gpu$|^class Queue \\{",
        {path.relative_to(ROOT).as_posix() for path in (ROOT / "runtime" / "opencl").rglob("*")}
        | {path.relative_to(ROOT).as_posix() for path in (ROOT / "runtime" / "coexec").rglob("*")}
        | {  # use the interface
            "runtime/engine/include/engine/device_choice.h",
            "runtime/engine/include/engine/gpu_apis.h",
            "runtime/engine/make_backend.cpp",
        },
    ),
    "A converter pass": (r"MergeScaleBias|merge_scale_bias", set()),
    "An importer rule": (r"\"Flatten\"|\"max_pool2d_with_indices\"", set()),
    "An option of the engine": (
        r"(?<!std::)in_place",
        {  # what the option does
            "phonebit/network/network.py",
            "runtime/engine/include/engine/network.h",
            "runtime/engine/network.cpp",
            "runtime/include/phonebit/phonebit.h",
            "runtime/loader/file_bytes.cpp",
            "runtime/loader/include/loader/file_bytes.h",
            "runtime/loader/read_tables.cpp",
            "runtime/plugins/compiled_part.cpp",
        },
    ),
}
"""For each checklist how to find its example, and files that have it without being on the list."""


def checklist(title: str) -> set[str]:
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".so", ".wasm"):
                yield path


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    read = {path: path.read_text(encoding="utf-8", errors="replace") for path in sources()}
    return {path.relative_to(ROOT).as_posix(): text for path, text in read.items()}


def test_every_checklist_has_an_example() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == list(EXAMPLES)


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_checklist_names_the_places_of_its_example(title: str, texts: dict[str, str]) -> None:
    pattern, others = EXAMPLES[title]
    found = {path for path, text in texts.items() if re.search(pattern, text, re.MULTILINE)}
    assert found - others == checklist(title) & found, "places that the checklist does not name"
    for path in checklist(title) - found:  # lists files by a name that the pattern does not have
        assert (ROOT / path).is_file(), path


def test_an_instruction_set_needs_few_files_outside_its_folder() -> None:
    files = checklist("A CPU instruction set")
    assert len([path for path in files if not path.startswith("cpu_backend/avx2/")]) <= 6


def test_named_files_exist() -> None:
    names = re.findall(r"`([\w/]+/[\w.]+\.\w+)`", PAGE)
    assert len(names) > 30
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_a_dummy_pass_runs_in_the_pipeline() -> None:
    seen: list[Graph] = []

    class Dummy(Pass):
        """Given anything, result the same."""

        def run(self, graph: Graph, log: PassLog) -> None:
            seen.append(graph)
            log.notes.append("a dummy ran")

    result = run_pipeline(tiny_classifier(), passes=(*PASSES, Dummy()))
    assert len(seen) == 1 and "a dummy ran" in result.log.notes


def test_a_dummy_function_has_a_number_and_a_name() -> None:
    class Numbers(IntEnum):
        SQUARE = 9999

    class Square(Function):
        kinds = (Numbers.SQUARE,)
        names = Names(keras="square", torch="square")

        def apply(self, value, operands):  # type: ignore[no-untyped-def]
            return value * value

    assert Square().apply(np.float32([3]), [])[0] == 9
    assert [each for each in Function.__subclasses__() if each.names.keras == "square"] == [Square]
    Square.kinds = ()  # other tests count the classes


def test_a_number_without_a_class_is_noticed() -> None:
    class Numbers(IntEnum):
        NOBODY = 9998

    with pytest.raises(TypeError, match="NOBODY"):
        EpilogueOp.by_kind(Numbers)
