"""Python's Network and the C interface are one engine: same files, same inputs, same answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from binding_types import Array, BindingError, BoundNetwork
from c_binding import CNetwork
from c_library import c_library
from python_binding import PythonNetwork

from phonebit import InputError, Network, Preprocessing
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_runtime, pyopencl_library
from phonebit.images.preprocessing import Interpolation, Resize
from support.golden import described_classifier, golden_graph
from support.opencl_device import device_name, pyopencl_device

pytestmark = pytest.mark.filterwarnings("ignore:the file has no plan for:phonebit.PhoneBitWarning")
GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
FILES = sorted(GOLDEN.glob("*.pbit"))
TINY = GOLDEN / "tiny_classifier.pbit"
DEVICES = ("cpu", "gpu", "gpu+cpu")
BINDINGS = ("python", "c")
THREADS = 2

Load = Callable[..., BoundNetwork]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """Loads a file by a binding: ``load(binding, file, device)``; one cache folder for both."""
    library = c_library()
    loader = pyopencl_library()
    gpu_runtime()
    if loader is not None:
        assert library.phonebit_use_opencl_library(str(loader).encode()) == 0
    cache = tmp_path_factory.mktemp("cache")

    def load_by(
        binding: str, file: Path, device: str = "cpu", levels: bool = False
    ) -> BoundNetwork:
        named = device.replace("gpu", _gpu()) if device in DEVICES[1:] else device
        if binding == "python":
            return PythonNetwork(file, named, THREADS)
        return CNetwork(file, named, THREADS, cache, levels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHONEBIT_CACHE_DIR", str(cache))
        yield load_by


def _gpu() -> str:
    return device_name(pyopencl_device())


def stored(file: Path, kind: str, batch: int) -> dict[str, Array]:
    """Golden arrays of a batch: the stored images, again and again."""
    with np.load(file.with_suffix(".npz")) as arrays:
        found = {
            name.removeprefix(f"{kind}:"): arrays[name]
            for name in arrays.files
            if name.startswith(f"{kind}:")
        }
    return {name: array[np.arange(batch) % len(array)] for name, array in found.items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_outputs_are_the_golden_ones_by_either_binding(load: Load, file: Path, device: str) -> None:
    networks = {binding: load(binding, file, device) for binding in BINDINGS}
    for batch in (1, 3):
        inputs, expected = stored(file, "in", batch), stored(file, "out", batch)
        outputs = {binding: network.forward(inputs) for binding, network in networks.items()}
        assert outputs["python"].keys() == outputs["c"].keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(outputs["c"][name], outputs["python"][name])
            if name.endswith("_tolerance"):  # sigmoid, tanh, softmax: exp differs in its last bits
                np.testing.assert_allclose(outputs["c"][name], array, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(outputs["c"][name], array)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_facts_are_the_same_by_either_binding(load: Load, file: Path, device: str) -> None:
    of_python, of_c = (load(binding, file, device).facts for binding in BINDINGS)
    assert of_c == of_python
    assert of_c.outputs
    assert len(of_c.layers) > 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_profile_has_a_time_for_each_layer(load: Load, binding: str, device: str) -> None:
    network = load(binding, TINY, device)
    times = network.profile(stored(TINY, "in", 2))
    assert len(times) == len(network.facts.layers)
    assert sum(times) > 0
    assert min(times) >= 0


def damaged(content: bytes) -> dict[str, bytes]:
    """Files that nobody may load."""
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0xFF
    return {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "longer": content + b"x",
        "not_ours": b"RIFF" + content[4:],
        "later": content[:8] + b"\xff" + content[9:],
        "flipped": bytes(flipped),
    }


@pytest.mark.parametrize("name", damaged(TINY.read_bytes()))
def test_damaged_files_get_the_same_words(load: Load, name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.pbit"
    file.write_bytes(damaged(TINY.read_bytes())[name])
    errors = []
    for binding in BINDINGS:
        with pytest.raises(BindingError) as raised:
            load(binding, file)
        errors.append((raised.value.kind, raised.value.text))
    assert errors[0] == errors[1]
    assert errors[0][0] == "format"
    assert str(file) in errors[0][1]


@pytest.mark.parametrize("device", ["cpu:pdp11", "gpu:99", "npu", "gpu+npu"])
def test_devices_that_are_not_there_are_refused_by_either_binding(load: Load, device: str) -> None:
    errors = []
    for binding in BINDINGS:
        with pytest.raises(BindingError) as raised:
            load(binding, TINY, device)
        errors.append(raised.value)
    named = device.split("+")[-1].split(":")[-1]
    assert all(named in error.text for error in errors)
    if "npu" not in device:  # what is no name of a device at all is the C interface's argument
        assert {error.kind for error in errors} == {"device"}


def bad_buffers(image: Array) -> dict[str, tuple[list[Array], str]]:
    """Inputs that do not fit a network that reads one f32 input, and what is said of them."""
    nan = image.copy()
    nan[1, 2, 3, 4] = np.nan
    return {
        "short": (
            [image[:1]],
            "input 'x': got a buffer of 3720 bytes, expected 3720 for each of 2",
        ),
        "none": ([], "inputs: got 0 buffers, expected 1"),
        "two": ([image, image], "inputs: got 2 buffers, expected 1"),
        "nan": (
            [nan],
            "input 'x': NaN at image 1, row 2, column 3, channel 4; expected finite numbers",
        ),
    }


@pytest.mark.parametrize("name", ["short", "none", "two", "nan"])
def test_bad_buffers_are_refused_before_anything_is_written(load: Load, name: str) -> None:
    file = GOLDEN / "residual_block_31.pbit"
    [image] = stored(file, "in", 2).values()
    buffers, text = bad_buffers(image)[name]
    network = load("c", file)
    assert isinstance(network, CNetwork)
    outputs = network.result_memory(2)
    for output in outputs:
        output.fill(7)
    with pytest.raises(BindingError) as raised:
        network.forward_buffers(buffers, outputs, 2)
    assert raised.value.kind == "input"
    assert text in raised.value.text
    assert all((output == 7).all() for output in outputs)


def test_not_a_number_gets_the_same_words_from_python(load: Load) -> None:
    file = GOLDEN / "residual_block_31.pbit"
    [image] = stored(file, "in", 2).values()
    [nan], text = bad_buffers(image)["nan"]
    with pytest.raises(InputError, match="1 of 1860 values are not finite"):
        Network.load(file, device="cpu").forward({"x": nan})
    with pytest.raises(InputError) as of_binding:  # where Python's own check is left out
        gpu_runtime().Network(str(file)).forward([nan])
    assert str(of_binding.value) == text


IMAGES = {
    "gray": np.arange(31 * 17, dtype=np.uint8).reshape(31, 17),
    "rgb": (np.arange(40 * 53 * 3) % 251).astype(np.uint8).reshape(40, 53, 3),
    "rgba": (np.arange(9 * 300 * 4) % 253).astype(np.uint8).reshape(9, 300, 4),
}
RULES = {
    "plain": Preprocessing((0.0, 255.0)),
    "nearest": Preprocessing((-1.0, 1.0), interpolation=Interpolation.NEAREST),
    "letterbox": Preprocessing(
        (0.0, 1.0), (0.45,), (0.22,), resize=Resize.LETTERBOX, fill_level=128,
        interpolation=Interpolation.BICUBIC,
    ),
    "shorter_side": Preprocessing((0.0, 1.0), resize=Resize.SHORTER_SIDE, resize_to=64),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("name", ["tiny_classifier", "u8_first_layer_3_64", "float_rgb"])
def test_images_become_the_same_inputs(
    load: Load, float_rgb: Path, name: str, image: str, rule: str
) -> None:
    file = float_rgb if name == "float_rgb" else GOLDEN / f"{name}.pbit"
    levels, how = IMAGES[image], RULES[rule]
    of_python, of_c = (load(binding, file).prepare_image(levels, how) for binding in BINDINGS)
    assert of_c.dtype == of_python.dtype
    np.testing.assert_array_equal(of_c, of_python)
    assert len(np.unique(of_c)) > 2


def test_labels_and_the_rule_for_images_are_the_files_by_either_binding(
    load: Load, tmp_path: Path
) -> None:
    graph = described_classifier()
    graph.labels = ["Käse", "a b", "猫", *map(str, range(7))]
    path = tmp_path / "described.pbit"
    path.write_bytes(to_bytes(graph, {}))
    of_python, of_c = (load(binding, path) for binding in BINDINGS)
    assert of_c.facts.labels == of_python.facts.labels == tuple(graph.labels)
    assert of_c.rule == of_python.rule
    assert of_c.rule is not None
    assert of_c.rule.resize is Resize.LETTERBOX
    levels = IMAGES["rgb"]
    images = [network.prepare_image(levels, None) for network in (of_python, of_c)]
    np.testing.assert_array_equal(images[0], images[1])
    np.testing.assert_array_equal(images[1], of_c.prepare_image(levels, of_c.rule))
    assert all(load(binding, TINY).rule is None for binding in BINDINGS)


@pytest.mark.parametrize("device", DEVICES)
def test_levels_in_place_of_values_give_the_same_bits(
    load: Load, tmp_path: Path, device: str
) -> None:
    graph = golden_graph("float_layers")
    rule = Preprocessing((0.0, 1.0), mean=(0.45,), std=(0.22,))
    graph.preprocessing = dict.fromkeys(graph.inputs, rule)
    path = tmp_path / "ruled.pbit"
    path.write_bytes(to_bytes(graph, {}))
    of_values, of_levels = load("c", path, device), load("c", path, device, levels=True)
    [info], [told] = of_values.facts.inputs, of_levels.facts.inputs
    assert (info.dtype, told.dtype) == ("f32", "u8")
    levels = np.random.default_rng(1).integers(0, 256, (3, *info.shape), np.uint8)
    expected = of_values.forward({info.name: rule.values(levels)})
    for name, result in of_levels.forward({info.name: levels}).items():
        np.testing.assert_array_equal(result, expected[name])
    with pytest.raises(BindingError, match=f"expected {levels[0].nbytes} for each of 3 images"):
        of_levels.forward({info.name: rule.values(levels)})


@pytest.fixture(scope="module")
def float_rgb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network whose three real channels are images."""
    path = tmp_path_factory.mktemp("networks") / "float_rgb.pbit"
    path.write_bytes(to_bytes(golden_graph("binary_conv_threshold_3_8_pad0"), {}))
    return path


@pytest.mark.parametrize("binding", BINDINGS)
def test_an_inference_can_be_cancelled_and_the_next_is_right(load: Load, binding: str) -> None:
    network = load(binding, TINY)
    many = stored(TINY, "in", 20000)
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(network.forward(many))
        except BindingError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        network.cancel()
        thread.join(0.001)
    [error] = found
    assert isinstance(error, BindingError)
    assert error.kind == "cancelled"
    [result] = network.forward(stored(TINY, "in", 3)).values()
    np.testing.assert_array_equal(result, stored(TINY, "out", 3)["logits"])
