"""Headers of all kernel files keep the grammar of bnn_kernels/README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phonebit.bnn_kernels.sources import assemble, kernel_paths, tunables

KEYS = (
    "kernel",
    "math",
    "args",
    "in",
    "out",
    "weights",
    "geometry",
    "channels",
    "tune",
    "requires",
    "ref",
)
ARGUMENT = r"(?:int \w+|(?:void|atomic_int|uchar|ushort|uint|int|float)\* \w+|image2d \w+|SINK)"
SIZES = r"(?:[A-Z][A-Z0-9_]*|pixels|channels|ceil|roundup|max|min|\d+|[-+*/(), ])+"
README = (Path(__file__).parents[2] / "bnn_kernels/README.md").read_text(encoding="utf-8")

every_kernel = pytest.mark.parametrize("kernel", kernel_paths())


def header(kernel: str) -> list[tuple[str, str]]:
    """(key, text) of each line; lines without a key go on with the line above."""
    fields: list[tuple[str, str]] = []
    for line in kernel_paths()[kernel].read_text(encoding="utf-8").split("\n"):
        if match := re.fullmatch(r"// @(\w+) +(\S.*)", line):
            fields.append((match[1], match[2]))
        elif fields and line.startswith("//     "):
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line[2:].strip()}")
        else:
            break
    return fields


def field(kernel: str, key: str) -> str:
    return next(text for name, text in header(kernel) if name == key)


def without_comments(text: str) -> str:
    return re.sub(r"//.*", "", text)


@every_kernel
def test_header_has_its_fields_once_and_in_order(kernel: str) -> None:
    keys = [key for key, _ in header(kernel)]
    assert keys == sorted(keys, key=KEYS.index)
    for key in KEYS:
        assert key == "tune" or keys.count(key) <= 1, f"@{key} twice"
    assert {"kernel", "math", "args", "geometry", "ref"} <= set(keys)
    assert re.search(r"   @source \S", field(kernel, "ref"))


@every_kernel
def test_kernel_is_called_as_its_file(kernel: str) -> None:
    assert re.fullmatch(rf"{kernel}   \S.*", field(kernel, "kernel"))
    text = without_comments(kernel_paths()[kernel].read_text(encoding="utf-8"))
    assert re.findall(r"__kernel\b[^{]*?\bvoid\s+(\w+)\(", text) == [kernel]


@every_kernel
def test_args_are_the_kernels_parameters(kernel: str) -> None:
    arguments = field(kernel, "args").split(", ")
    for argument in arguments:
        assert re.fullmatch(ARGUMENT, argument), argument
    text = without_comments(kernel_paths()[kernel].read_text(encoding="utf-8"))
    signature = re.search(rf"\bvoid\s+{kernel}\(([^)]*)\)", text)
    assert signature is not None
    parameters, has_sink = re.subn(r"\bSINK_PARAMS\b", "", signature[1])
    names = [re.split(r"[ *]+", parameter.strip())[-1] for parameter in parameters.split(",")]
    assert [name.split()[-1].strip("*") for name in arguments if name != "SINK"] == names
    is_layer = kernel_paths()[kernel].parent.name != "coexec"
    assert (arguments[:2] == ["int first_pixel", "int end_pixel"]) == is_layer
    assert ("SINK" in arguments) == bool(has_sink)
    assert "SINK" not in arguments or arguments[-1] == "SINK"


@every_kernel
def test_tunables_are_used_and_have_a_default_among_their_values(kernel: str) -> None:
    lines = [text for key, text in header(kernel) if key == "tune"]
    found = tunables(kernel)
    assert len(lines) == len(found), "a @tune line that sources.py does not read"
    text = without_comments(assemble(kernel, {}))
    used = re.sub(r"^#define .*\n", "", text, count=len(found), flags=re.MULTILINE)
    used += field(kernel, "geometry")
    for tunable in found:
        assert tunable.default in tunable.values
        assert len(set(tunable.values)) == len(tunable.values)
        assert re.search(rf"\b{tunable.name}\b", used), f"{tunable.name} is not used"


@every_kernel
def test_geometry_is_arithmetic_of_defines_pixels_and_channels(kernel: str) -> None:
    geometry = field(kernel, "geometry")
    match = re.fullmatch(r"global = \((.+)\), local = \((.+)\)", geometry)
    assert match is not None, geometry
    for sizes in match.groups():
        assert re.fullmatch(SIZES, sizes)


@every_kernel
def test_kernels_with_parts_of_channels_count_them(kernel: str) -> None:
    grain = dict(header(kernel)).get("channels")
    assert ("channels" in field(kernel, "geometry")) == (grain is not None)
    if grain is not None:
        assert re.fullmatch(SIZES, grain) and "SINK" in field(kernel, "args")
        text = without_comments(assemble(kernel, {}))
        assert re.search(r"= FIRST_CHANNEL\b", text)


@every_kernel
def test_counts_of_bits_refer_to_their_derivation(kernel: str) -> None:
    math = field(kernel, "math")
    assert ("base - 2 d" in math) == ("base - 2 d (common/counts.clh)" in math)
    assert ("base - 2 d" in math) == ("limit" in math or kernel == "bconv2d_accumulate")


@every_kernel
def test_readme_lists_the_kernel(kernel: str) -> None:
    path = kernel_paths()[kernel]
    assert f"`{path.parent.name}/{kernel}`" in README


@every_kernel
def test_file_is_short_and_asks_for_no_more_than_opencl_1_2(kernel: str) -> None:
    text = kernel_paths()[kernel].read_text(encoding="utf-8")
    assert text.count("\n") <= 250
    assert not re.search(r"__attribute__\(\((?!reqd_work_group_size|work_group_size_hint)", text)
    assert "__VA_ARGS__" not in text and "auto" not in without_comments(text).split()


def test_readme_names_no_kernel_that_does_not_exist() -> None:
    named = set(re.findall(r"`(?:binary|values|coexec)/(\w+)`", README))
    assert named == set(kernel_paths())
