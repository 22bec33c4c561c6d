"""``phonebit.Network``: what it returns, and what it refuses in which words."""

from __future__ import annotations

import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import DeviceError, EngineOptions, InputError, ModelFormatError, Network
from phonebit.cli.options import EngineFlags
from phonebit.layer_info import LayerInfo, TensorInfo, make_profiles
from phonebit.network.input_checks import check_inputs
from phonebit.network.random_inputs import random_inputs


@pytest.fixture(scope="module")
def network(u8_file: Path) -> Network:
    return Network.load(u8_file, device="cpu", threads=1)


@pytest.fixture(scope="module")
def real_network(f32_file: Path) -> Network:
    return Network.load(f32_file, device="cpu", threads=1)


@pytest.fixture
def batch(network: Network) -> np.ndarray[Any, Any]:
    return random_inputs(network.inputs, 3)["picture"]


def test_describes_itself(network: Network) -> None:
    assert [(i.name, i.dtype, i.shape) for i in network.inputs] == [("picture", "u8", (28, 28, 1))]
    assert [(o.dtype, o.shape) for o in network.outputs] == [("f32", (1, 1, 10))]
    assert len(network.labels) == 10
    assert network.preprocessing["picture"].range == (-1.0, 1.0)
    assert network.metadata["name"]
    assert "28x28x1" in repr(network)
    assert network.device in repr(network)


def test_memory_is_consistent(network: Network, u8_file: Path) -> None:
    memory = network.memory
    assert memory["file_bytes"] == u8_file.stat().st_size
    assert memory["arena_bytes"] >= memory["lower_bound_bytes"] > 0


def test_forward_returns_one_row_of_probabilities_an_input(
    network: Network, batch: np.ndarray[Any, Any]
) -> None:
    scores = network.forward(batch)
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (3, 10)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-5)


def test_a_batch_gives_what_its_elements_give_alone(
    network: Network, batch: np.ndarray[Any, Any]
) -> None:
    together = network.forward(batch)
    alone = [network.forward(batch[i : i + 1]) for i in range(3)]
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_a_dict_and_a_strided_view_are_as_good(
    network: Network, batch: np.ndarray[Any, Any]
) -> None:
    expected = network.forward(batch)
    np.testing.assert_array_equal(network.forward({"picture": batch})["probabilities"], expected)
    doubled = np.repeat(batch, 2, axis=0)
    np.testing.assert_array_equal(network.forward(doubled[::2]), expected)


def test_u8_and_f32_files_of_one_checkpoint_agree(
    network: Network, real_network: Network, batch: np.ndarray[Any, Any]
) -> None:
    values = (2.0 * batch.astype(np.float32) - 255.0) / np.float32(255.0)
    np.testing.assert_allclose(network.forward(batch), real_network.forward(values), atol=1e-4)


def test_activations_end_in_the_outputs(network: Network, batch: np.ndarray[Any, Any]) -> None:
    values = network.activations(batch)
    name = network.outputs[0].name
    np.testing.assert_array_equal(values[name].reshape(3, 10), network.forward(batch))
    written = {out for layer in network.layers for out in layer.outputs}
    assert written <= set(values)
    for value in values.values():
        assert len(value) == 3
        if value.dtype == np.int8:
            assert set(np.unique(value)) <= {-1, 1}


def test_run_layer_repeats_what_activations_show(
    network: Network, batch: np.ndarray[Any, Any]
) -> None:
    values = network.activations(batch)
    for index, layer in enumerate(network.layers):
        results = network.run_layer(index, [values[name] for name in layer.inputs])
        assert set(results) == set(layer.outputs)
        for name, result in results.items():
            np.testing.assert_array_equal(result, values[name], err_msg=layer.name)


def test_run_layer_refuses_an_unknown_index(network: Network) -> None:
    with pytest.raises(InputError, match=r"expected 0\.\."):
        network.run_layer(len(network.layers), [])


def test_profile_covers_all_layers(network: Network, batch: np.ndarray[Any, Any]) -> None:
    profiles = network.profile(batch, repeats=2)
    assert [entry.name for entry in profiles] == [layer.name for layer in network.layers]
    assert sum(entry.share for entry in profiles) == pytest.approx(1.0)
    macs = [(entry.macs, layer.macs) for entry, layer in zip(profiles, network.layers, strict=True)]
    assert all(total == 3 * single for total, single in macs)
    with pytest.raises(InputError, match="repeats"):
        network.profile(batch, repeats=0)


def test_profile_numbers_follow_their_definitions() -> None:
    layers = [
        LayerInfo("a", "binary_conv2d", "k", 1_000_000, True, 10, ("x",), ("y",)),
        LayerInfo("b", "softmax", "k", 0, False, 0, ("y",), ("z",)),
    ]
    first, second = make_profiles(layers, [0.3, 0.1], batch=2)
    assert first.gops == pytest.approx(2 * 2e6 / 0.3e-3 / 1e9)
    assert (first.share, second.share) == (pytest.approx(0.75), pytest.approx(0.25))
    assert second.gops == 0.0


def test_summary_lists_every_layer(network: Network) -> None:
    text = network.summary()
    assert all(layer.name in text for layer in network.layers)
    assert "% binary" in text


def test_threads_of_python_share_a_network(network: Network, batch: np.ndarray[Any, Any]) -> None:
    expected = network.forward(batch)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if not np.array_equal(network.forward(batch), expected):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_every_supported_isa_gives_the_same(
    u8_file: Path, network: Network, batch: np.ndarray[Any, Any]
) -> None:
    from phonebit import _runtime

    expected = network.forward(batch)
    for name, _, supported in _runtime.isas():
        if supported:
            forced = Network.load(u8_file, device=f"cpu:{name}", threads=2)
            assert (forced.isa, forced.device) == (name, f"cpu:{name}")
            np.testing.assert_array_equal(forced.forward(batch), expected, err_msg=name)


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((28, 28, 1), r"x\[None\]"),
        ((28, 28), r"x\[None, :, :, None\]"),
        ((5, 28, 28), r"x\[\.\.\., None\]"),
        ((1, 1, 28, 28), "channels first"),
        ((2, 32, 32, 1), "resize to 28x28"),
        ((2, 28, 28, 3), "batch, height, width, channels"),
        ((784,), "batch, height, width, channels"),
    ],
)
def test_a_wrong_shape_is_refused_with_advice(
    network: Network, shape: tuple[int, ...], advice: str
) -> None:
    with pytest.raises(InputError, match=advice) as caught:
        network.forward(np.zeros(shape, np.uint8))
    assert "(N, 28, 28, 1)" in str(caught.value)
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_a_wrong_dtype_is_refused(network: Network, dtype: type) -> None:
    with pytest.raises(InputError, match=r"expected uint8.*got .*astype\(np\.uint8\)"):
        network.forward(np.zeros((1, 28, 28, 1), dtype))


def test_float64_is_refused_where_float32_is_read(real_network: Network) -> None:
    with pytest.raises(InputError, match=r"astype\(np\.float32\)"):
        real_network.forward(np.zeros((1, 28, 28, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(
    real_network: Network, bad: float
) -> None:
    x = np.zeros((2, 28, 28, 1), np.float32)
    x[1, 3, 4, 0] = bad
    with pytest.raises(InputError, match=r"1 of 1568 .*at \(1, 3, 4, 0\)"):
        real_network.forward(x)


def test_an_empty_batch_is_refused(network: Network) -> None:
    with pytest.raises(InputError, match="empty"):
        network.forward(np.zeros((0, 28, 28, 1), np.uint8))


def test_what_is_no_array_is_refused(network: Network) -> None:
    with pytest.raises(InputError, match="list"):
        network.forward([[0]])  # type: ignore[arg-type]


def test_dict_problems_are_all_named(network: Network) -> None:
    with pytest.raises(InputError, match="'picture' is missing; 'image' is not an input"):
        network.forward({"image": np.zeros((1, 28, 28, 1), np.uint8)})


def test_several_inputs_need_a_dict_of_one_batch_size() -> None:
    infos = [TensorInfo("a", "f32", (1, 1, 4)), TensorInfo("b", "u8", (2, 2, 1))]
    with pytest.raises(InputError, match=r"2 inputs.*'a', 'b'"):
        check_inputs(np.zeros((1, 4), np.float32), infos)
    a, b = np.zeros((3, 4), np.float32), np.zeros((2, 2, 2, 1), np.uint8)
    with pytest.raises(InputError, match="3 of 'a', 2 of 'b'"):
        check_inputs({"a": a, "b": b}, infos)
    arrays = check_inputs({"b": b, "a": a[:2]}, infos)
    assert [array.shape for array in arrays] == [(2, 1, 1, 4), (2, 2, 2, 1)]


def test_the_network_still_works_after_a_refusal(
    network: Network, batch: np.ndarray[Any, Any]
) -> None:
    expected = network.forward(batch)
    with pytest.raises(InputError):
        network.forward(batch[..., 0])
    np.testing.assert_array_equal(network.forward(batch), expected)


@pytest.mark.parametrize("device", ["tpu", "cpu:sse9", "", "CPU"])
def test_an_unknown_device_is_refused_with_the_known_ones(u8_file: Path, device: str) -> None:
    with pytest.raises(DeviceError, match="cpu:scalar"):
        Network.load(u8_file, device=device)


@pytest.mark.parametrize("threads", [-1, 1025])
def test_thread_counts_are_bounded(u8_file: Path, threads: int) -> None:
    with pytest.raises(InputError, match="threads"):
        Network.load(u8_file, threads=threads)


def test_a_missing_file_and_a_folder_are_operating_system_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Network.load(tmp_path / "no.pbit")
    with pytest.raises(OSError):
        Network.load(tmp_path)


def test_a_keyword_that_is_no_option_is_named(u8_file: Path) -> None:
    with pytest.raises(TypeError, match=r"'thread'; known: threads, precision"):
        Network.load(u8_file, thread=2)  # type: ignore[call-arg]


def test_every_engine_option_is_one_of_the_runtime(u8_file: Path) -> None:
    defaults = EngineOptions(
        threads=1, precision="exact", plan=None, sharing="auto", synchronization="auto", trial=True,
        cores="any", hint="none", in_place=False, max_memory_bytes=0, max_work=0.0, kernels="tuned",
    )  # fmt: skip
    assert defaults.keys() == EngineOptions.__annotations__.keys()
    assert Network.load(u8_file, "cpu", **defaults).threads == 1


def test_every_engine_flag_is_an_engine_option() -> None:
    flags = {field.name for field in fields(EngineFlags)}
    assert flags - {"device"} <= EngineOptions.__annotations__.keys()


@pytest.mark.parametrize("keep", [0, 3, 63, 64, 200, -1])
def test_a_truncated_file_is_refused(u8_file: Path, tmp_path: Path, keep: int) -> None:
    damaged = tmp_path / "cut.pbit"
    damaged.write_bytes(u8_file.read_bytes()[:keep])
    with pytest.raises(ModelFormatError, match=r"cut\.pbit"):
        Network.load(damaged)


def test_a_flipped_bit_is_noticed(u8_file: Path, tmp_path: Path) -> None:
    content = bytearray(u8_file.read_bytes())
    content[len(content) // 2] ^= 4
    damaged = tmp_path / "flipped.pbit"
    damaged.write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"flipped\.pbit"):
        Network.load(damaged)
