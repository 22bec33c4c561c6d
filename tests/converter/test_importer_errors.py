"""Files that cannot be imported give one clear error, whatever is wrong with them."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import phonebit
from phonebit.converter.importers.keras import weights
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.errors import ConversionError, PhoneBitError, UnsupportedLayerError

FIXTURES = Path(__file__).parent / "fixtures"


def edited(tmp_path: Path, name: str, edit: Callable[[dict[str, Any]], Any]) -> Path:
    """A copy of a fixture whose model_config went through ``edit`` (in place)."""
    path = tmp_path / f"{name}.h5"
    shutil.copy(FIXTURES / f"{name}.h5", path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        edit(config)
        file.attrs["model_config"] = json.dumps(config)
    return path


def layer(config: dict[str, Any], name: str) -> dict[str, Any]:
    """The configuration of one layer."""
    return next(
        entry["config"] for entry in config["config"]["layers"] if entry["config"]["name"] == name
    )


def edited_weights(tmp_path: Path, edit: Callable[[h5py.Group], None]) -> Path:
    """A copy of the sequential fixture whose first layer's weights went through ``edit``."""
    path = tmp_path / "weights.h5"
    shutil.copy(FIXTURES / "sequential.h5", path)
    with h5py.File(path, "r+") as file:
        group = file["model_weights"]
        edit(group[next(name for name in group if name.startswith("quant_conv2d"))])
    return path


# --- files that are something else ----------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and then nothing", b"\x89HDF\r\n"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match=r"model\.h5"):
        import_larq(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="No such file"):
        import_larq(tmp_path / "nothing.h5")
    with pytest.raises(ConversionError, match="folder"):
        import_larq(tmp_path)
    with pytest.raises(ConversionError, match="a path or a Keras model"):
        import_larq(3)


@pytest.mark.parametrize("name", ["nothing.pt2", "nothing.onnx", "nothing.tflite"])
def test_a_missing_file_is_named_before_a_missing_framework(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=rf"{name}: no such file"):
        phonebit.convert(tmp_path / name)


def test_an_hdf5_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["x"] = np.zeros(3)
    with pytest.raises(ConversionError, match="not a Keras model"):
        import_larq(tmp_path / "data.h5")


def test_a_zip_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.keras", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ConversionError, match="zip archive"):
        import_larq(tmp_path / "data.keras")


@pytest.mark.parametrize("generation", [2, 3])
def test_weights_only_files_say_how_to_save_the_model(tmp_path: Path, generation: int) -> None:
    with h5py.File(tmp_path / "w.h5", "w") as file:
        if generation == 2:
            file.attrs["layer_names"] = ["conv"]
            file.create_group("conv")
        else:
            file.create_group("layers/conv2d/vars")
    with pytest.raises(ConversionError, match=r"weights only.*model\.save"):
        import_larq(tmp_path / "w.h5")


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_every_truncation_is_an_error(tmp_path: Path, suffix: str) -> None:
    data = (FIXTURES / f"dense_layers.{suffix}").read_bytes()
    path = tmp_path / f"cut.{suffix}"
    for length in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:length])
        with pytest.raises(ConversionError, match="cut"):
            import_larq(path)


def test_a_heap_that_would_hang_the_hdf5_library_is_refused(tmp_path: Path) -> None:
    data = bytearray((FIXTURES / "two_inputs.h5").read_bytes())
    heap = data.index(b"GCOL")
    # Objects follow the heap's header of 16 bytes: index, references, reserved, length, content.
    data[heap + 16 : heap + 32] = bytes(16)  # free space that is 0 bytes long
    (tmp_path / "heap.h5").write_bytes(data)
    with pytest.raises(ConversionError, match="global heap"):
        import_larq(tmp_path / "heap.h5")


def test_random_damage_to_an_archive_is_an_error_or_harmless(tmp_path: Path) -> None:
    rng = random.Random(2026)
    original = (FIXTURES / "dense_layers.keras").read_bytes()
    for _ in range(200):
        data = bytearray(original)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "damaged.keras").write_bytes(data)
        try:
            import_larq(tmp_path / "damaged.keras")
        except PhoneBitError as error:
            assert "damaged.keras" in str(error)


# --- unsupported content --------------------------------------------------------------------------


def test_everything_unsupported_is_listed_at_once(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        twn = {"class_name": "SteTern", "config": {"ternary_weight_networks": True}}
        layer(config, "conv0")["input_quantizer"] = twn
        layer(config, "conv1")["input_quantizer"] = {"class_name": "DoReFa", "config": {"k_bit": 9}}
        layer(config, "conv2")["data_format"] = "channels_first"
        layer(config, "conv2")["activation"] = "erf"
        layer(config, "conv3")["padding"] = "full"
        entry = config["config"]["layers"][-1]
        entry["class_name"] = "Lambda"

    with pytest.raises(UnsupportedLayerError) as caught:
        import_larq(edited(tmp_path, "binary_convolutions", edit))
    problems = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 6
    for text in ("conv0.*each batch", "conv1.*k_bit=9", "conv2.*erf"):
        assert re.search(text, problems)
    assert "padding='full'" in problems
    assert "Python code" in problems


@pytest.mark.parametrize(
    ("quantizer", "message"),
    [
        ({"class_name": "Larq>DoReFa", "config": {"k_bit": 8}}, "k_bit=8"),
        ({"class_name": "MyQuantizer", "config": {}}, 'custom_quantizers={"MyQuantizer": "sign"}'),
        ({"class_name": "__lambda__", "config": {"value": "xx"}}, "lambda"),
        (17, "None"),
    ],
)
def test_unknown_quantizers_are_named(tmp_path: Path, quantizer: Any, message: str) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["kernel_quantizer"] = quantizer

    with pytest.raises(UnsupportedLayerError) as caught:
        import_larq(edited(tmp_path, "binary_convolutions", edit))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "spelling",
    [
        "ste_sign",
        "Larq>SteSign",
        {"class_name": "SteSign", "config": {"clip_value": 1.25}},
        {"class_name": "Larq>ApproxSign", "config": {}},
        {"class_name": "function", "config": "swish_sign", "registered_name": "function"},
        {"class_name": "Mine>MySign", "config": {}},
        "my_sign",
    ],
)
def test_sign_quantizers_are_known_in_every_spelling(tmp_path: Path, spelling: Any) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["kernel_quantizer"] = spelling
        layer(config, "conv0")["input_quantizer"] = spelling

    path = edited(tmp_path, "binary_convolutions", edit)
    graph = import_larq(path, custom_quantizers={"MySign": "sign", "my_sign": "sign"})
    original = import_larq(FIXTURES / "binary_convolutions.h5")
    assert [n.name for n in graph.nodes] == [n.name for n in original.nodes]
    assert graph.expected_binary == original.expected_binary


def test_custom_quantizers_of_unknown_kind_are_refused() -> None:
    with pytest.raises(ConversionError, match="unknown kind 'tanh'"):
        import_larq(FIXTURES / "dense_layers.h5", custom_quantizers={"x": "tanh"})


def test_an_activation_that_is_a_quantizer_becomes_a_sign(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["activation"] = "ste_sign"

    graph = import_larq(edited(tmp_path, "binary_convolutions", edit))
    assert graph.types["conv0"].dtype.name == "BIT"


def test_calls_in_training_mode_are_refused(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        config["config"]["layers"][1]["inbound_nodes"][0][0][3] = {"training": True}

    with pytest.raises(UnsupportedLayerError, match="training=True"):
        import_larq(edited(tmp_path, "binary_convolutions", edit))


@pytest.mark.parametrize(
    "policy",
    [
        "mixed_float16",
        "float64",
        {"module": "keras.mixed_precision", "class_name": "Policy", "config": {"name": "bfloat16"}},
        {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "mixed_bfloat16"}},
        {"module": "keras", "class_name": "QuantizedDTypePolicy", "config": {"mode": "int8"}},
    ],
)
def test_layers_that_compute_in_another_type_are_refused(tmp_path: Path, policy: Any) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["dtype"] = layer(config, "conv2")["dtype"] = policy

    with pytest.raises(UnsupportedLayerError, match=r"'conv0', layer 'conv2'.* policy"):
        import_larq(edited(tmp_path, "binary_convolutions", edit))


@pytest.mark.parametrize(
    "policy", [None, "float32", "_infer", {"class_name": "Policy", "config": {"name": "float32"}}]
)
def test_layers_of_the_policy_float32_are_read(tmp_path: Path, policy: Any) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["dtype"] = policy

    assert import_larq(edited(tmp_path, "binary_convolutions", edit)).nodes


def test_open_input_sizes_need_input_shape(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "image")["batch_input_shape"] = [None, None, None, 6]

    path = edited(tmp_path, "binary_convolutions", edit)
    with pytest.raises(ConversionError, match=r"input_shape=\(height, width, channels\)"):
        import_larq(path)
    assert import_larq(path, input_shape=(9, 8, 6)).types["image"].shape == (9, 8, 6)
    with pytest.raises(ConversionError, match="contradicts"):
        import_larq(path, input_shape=(9, 8, 5))


# --- inconsistent or hostile content --------------------------------------------------------------


def test_layers_in_a_circle_are_refused(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        config["config"]["layers"][1]["inbound_nodes"] = [[["conv0", 0, 0, {}]]]

    with pytest.raises(ConversionError, match="circle"):
        import_larq(edited(tmp_path, "binary_convolutions", edit))


def test_references_to_nowhere_are_refused(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        config["config"]["layers"][1]["inbound_nodes"] = [[["nobody", 0, 0, {}]]]

    with pytest.raises(ConversionError, match="nobody"):
        import_larq(edited(tmp_path, "binary_convolutions", edit))


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    def nest(config: dict[str, Any]) -> None:
        model = dict(config)
        for depth in range(40):
            inner = {**model, "name": f"m{depth}", "inbound_nodes": []}
            body = {"name": f"m{depth}", "layers": [inner]}
            model = {"class_name": "Sequential", "config": body}
        config.clear()
        config.update(model)

    with pytest.raises(ConversionError, match="nested"):
        import_larq(edited(tmp_path, "sequential", nest))

    def brackets(config: dict[str, Any]) -> None:
        deep: Any = 0
        for _ in range(60):
            deep = [deep]
        config["config"]["layers"][1]["inbound_nodes"] = deep

    with pytest.raises(ConversionError, match="nested"):
        import_larq(edited(tmp_path, "binary_convolutions", brackets))


def test_json_of_endless_depth_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.h5"
    shutil.copy(FIXTURES / "sequential.h5", path)
    with h5py.File(path, "r+") as file:
        del file.attrs["model_config"]
        file.attrs["model_config"] = "[" * 20000
    with pytest.raises(ConversionError, match="not valid JSON"):
        import_larq(path)


def test_a_layer_of_absurd_size_is_refused_before_memory_is_used(tmp_path: Path) -> None:
    def edit(config: dict[str, Any]) -> None:
        layer(config, "conv0")["filters"] = 1 << 19
        layer(config, "conv0")["kernel_size"] = [4, 1 << 18]

    with pytest.raises(ConversionError, match="conv0"):
        import_larq(edited(tmp_path, "binary_convolutions", edit))


def replace_kernel(group: h5py.Group, **options: Any) -> None:
    name = group.attrs["weight_names"][0]
    del group[name]
    group.create_dataset(name, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": np.zeros((3, 3, 1, 7), np.float32)}, "shape"),
        ({"data": np.zeros((3, 3, 1, 8), np.int32)}, "floating point"),
        ({"data": np.full((3, 3, 1, 8), np.nan, np.float32)}, "NaN"),
        ({"shape": (3, 3, 1, 8), "dtype": "f4"}, "holds 0"),
        ({"shape": (3, 3, 1, 8), "dtype": "f4", "external": [("secret", 0, 288)]}, "ordinary"),
    ],
)
def test_wrong_weights_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = edited_weights(tmp_path, lambda group: replace_kernel(group, **options))
    with pytest.raises(ConversionError, match=message) as caught:
        import_larq(path)
    assert "kernel" in str(caught.value)


def test_links_out_of_the_file_are_not_followed(tmp_path: Path) -> None:
    def edit(group: h5py.Group) -> None:
        name = group.attrs["weight_names"][0]
        del group[name]
        group[name] = h5py.ExternalLink(str(FIXTURES / "sequential.h5"), group.name + "/" + name)

    with pytest.raises(ConversionError, match="ordinary"):
        import_larq(edited_weights(tmp_path, edit))


def test_missing_weights_are_named(tmp_path: Path) -> None:
    def edit(group: h5py.Group) -> None:
        group.attrs["weight_names"] = group.attrs["weight_names"][1:]

    with pytest.raises(ConversionError, match="expected 1 weights"):
        import_larq(edited_weights(tmp_path, edit))


def test_the_sum_of_all_weights_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MAX_WEIGHT_BYTES", 1000)
    for suffix in ("h5", "keras"):
        with pytest.raises(ConversionError, match="exceed"):
            import_larq(FIXTURES / f"dense_layers.{suffix}")


JUNK = [None, True, -1, 0, 1 << 70, 1.5, "", "x", [], {}, [None], {"class_name": "x"}, [[["a", 0]]]]


def mutate(value: Any, rng: random.Random) -> None:
    """Replaces one random entry somewhere inside ``value``."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            value = inner
            continue
        value[key] = copy.deepcopy(rng.choice(JUNK))
        return


@pytest.mark.parametrize("name", ["binary_convolutions", "merges", "nested_models", "keras3_plain"])
def test_random_junk_in_the_configuration_is_an_error_or_harmless(
    tmp_path: Path, name: str
) -> None:
    rng = random.Random(2026)
    for _ in range(60):
        path = edited(tmp_path, name, lambda config: mutate(config, rng))
        try:
            import_larq(path)
        except PhoneBitError as error:
            assert str(error)
