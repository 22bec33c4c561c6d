"""What is kept between runs for an OpenCL device: programs and tuning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit import Network, PhoneBitWarning
from phonebit.devices.target import find_target
from phonebit.devices.tuning_store import store_tuning, tuning_file
from phonebit.network.random_inputs import random_inputs


def test_a_second_start_compiles_nothing(tiny_file: Path, gpu: str) -> None:
    first = Network.load(tiny_file, device=gpu)
    again = Network.load(tiny_file, device=gpu)
    assert first.startup["programs_built"] + first.startup["programs_loaded"] > 0
    assert again.startup["programs_built"] == 0
    assert again.startup["programs_loaded"] > 0


@pytest.mark.usefixtures("cache_folder")
def test_candidates_can_be_measured_and_chosen(tiny_file: Path, gpu: str) -> None:
    network = Network.load(tiny_file, device=gpu)
    index = next(i for i, layer in enumerate(network.layers) if layer.binary)
    in_use, other = network.candidates(index)[0], network.candidates(index)[-1]
    latency_ms, equal = network.measure_choice(index, other, batch=2, repeats=3)
    assert latency_ms > 0
    assert equal
    key = find_target(gpu).key
    path = store_tuning(key, [network.tuning_line(index, other)])
    assert path is not None
    tuned = Network.load(tiny_file, device=gpu)
    assert tuned.candidates(index)[0] == other != in_use
    batch = random_inputs(network.inputs, 3)[network.inputs[0].name]
    np.testing.assert_array_equal(tuned.forward(batch), network.forward(batch))


@pytest.mark.usefixtures("cache_folder")
def test_damaged_stored_tuning_does_no_harm(tiny_file: Path, gpu: str) -> None:
    path = tuning_file(find_target(gpu).key)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("binary_conv2d * * * * no_such_kernel\n")
    with pytest.warns(PhoneBitWarning, match=r"no_such_kernel.*phonebit tune"):
        Network.load(tiny_file, device=gpu)
