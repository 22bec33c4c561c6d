"""``phonebit kernels``: what is listed, and programs that are those of the driver."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from phonebit import InputError, Network
from phonebit.bnn_kernels.sources import kernel_paths, tunables, with_comments
from phonebit.devices.gpus import gpu_runtime
from support.cli_process import Cli

ROOT = Path(__file__).parents[3]
CLASSIFIER = ROOT / "tests/golden/v1/tiny_classifier.pbit"


def code(program: str) -> str:
    """Without comments and blanks."""
    return re.sub(r"//.*|\s", "", program)


def test_list_shows_every_kernel_and_its_parameters(cli: Cli) -> None:
    text = cli("kernels", "list").out
    document = cli("kernels", "list", "--json").document
    assert [entry["kernel"] for entry in document] == list(kernel_paths())
    for entry in document:
        assert f"\n{entry['kernel']} " in text
        assert list(entry["parameters"]) == [found.name for found in tunables(entry["kernel"])]
    assert "TILE_PIXELS 1 [2] 4" in " ".join(text.split())


def test_show_prints_the_programs_of_the_driver(cli: Cli, gpu: str, u8_file: Path) -> None:
    network = Network.load(u8_file, device=gpu)
    for index, info in enumerate(network.layers):
        shown = cli("kernels", "show", u8_file, info.name, "--device", gpu, "--json").document
        assert (shown["layer"], shown["choice"]) == (info.name, info.kernel)
        programs = network.programs(index)
        assert [entry["kernel"] for entry in shown["programs"]] == [name for name, _ in programs]
        for entry, (name, text) in zip(shown["programs"], programs, strict=True):
            assert code(entry["source"]) == code(text)
            assert "#include" not in text and f"void {name}(" in text
            assert re.search(rf"^// @kernel +{name}   \w", entry["source"], re.MULTILINE)
    text = cli("kernels", "show", u8_file, len(network.layers) - 1, "--device", gpu).out
    assert text.startswith(f"// Layer {network.layers[-1].name} on {network.device}: ")
    assert text.endswith("}\n")


def test_what_is_shown_compiles(cli: Cli, gpu: str, u8_file: Path, opencl_queue: Any) -> None:
    import pyopencl

    name = next(info.name for info in Network.load(u8_file, device="cpu").layers if info.binary)
    shown = cli("kernels", "show", u8_file, name, "--device", gpu, "--json").document
    for entry in shown["programs"]:
        program = pyopencl.Program(opencl_queue.context, entry["source"]).build(["-cl-std=CL1.2"])
        assert entry["kernel"] in program.kernel_names.split(";")


def test_the_papers_kernels_are_shown_and_profiled(cli: Cli, gpu: str, u8_file: Path) -> None:
    first = Network.load(u8_file, device="cpu").layers[0].name
    options = (u8_file, "--device", gpu, "--kernels", "paper", "--json")
    shown = cli("kernels", "show", options[0], first, *options[1:]).document
    assert "conv2d_u8_planes" in shown["choice"]
    profiled = cli("profile", *options, "--runs", "1", "--warmup", "0").document
    assert profiled["kernels"] == "paper"
    assert "conv2d_u8_planes" in profiled["layers"][0]["kernel"]


def test_without_its_files_the_runtimes_text_is_shown() -> None:
    program = "#define IN_C 64\n// @kernel concat\n__kernel void concat() {}\n"
    assert with_comments("concat", program) == program
    assert with_comments("of_a_folder", program) == program


def test_unknown_layers_and_other_devices_are_refused(cli: Cli, gpu: str, u8_file: Path) -> None:
    network = Network.load(u8_file, device="cpu")
    Network.load(u8_file, device=gpu)  # so that no message of a first use stands before the error
    for wrong in ("no_such_layer", str(len(network.layers)), "-1"):
        refused = cli.refused("kernels", "show", "--device", gpu, "--", u8_file, wrong)
        assert "no such layer" in refused and network.layers[0].name in refused
    with pytest.raises(InputError, match=r"needs a network on .gpu."):
        network.programs(0)


@pytest.mark.skipif(shutil.which("cpp") is None, reason="needs a C preprocessor")
def test_readmes_example_is_what_a_preprocessor_makes_of_the_program(gpu: str) -> None:
    choice = "bconv2d_tiled TILE_PIXELS=1 TILE_FILTERS=8 VECTOR_WORDS=2"
    load = gpu_runtime().Network
    engine = load(CLASSIFIER, device=gpu)
    index = [info.name for info in engine.layers].index("conv2")
    engine = load(CLASSIFIER, device=gpu, tuning=engine.tuning_line(index, choice))
    ((kernel, program),) = engine.programs(index)
    assert kernel == "bconv2d_tiled"
    made = subprocess.run(["cpp", "-P", "-"], input=program, capture_output=True, text=True)
    readme = (ROOT / "bnn_kernels/README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```c\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    for function in example.split("\n\n"):
        assert "".join(function.split()) in "".join(made.stdout.split())
    assert f"`{choice}`" in " ".join(readme.split())
