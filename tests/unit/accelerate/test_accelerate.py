"""``phonebit.accelerate``: whole networks, their tensors, threads, state, and compilers."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from accelerated_networks import CLASSES, SHAPE, Pair, chain, eager, numbers  # noqa: E402

import phonebit  # noqa: E402
from phonebit.errors import ModelFormatError, PhoneBitError  # noqa: E402
from phonebit.network import Network  # noqa: E402
from phonebit.verification import verify  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def module() -> Any:
    return chain()


@pytest.fixture(scope="module")
def fast(module: Any) -> Any:
    return phonebit.accelerate(module, numbers(1))


@pytest.mark.parametrize("batch", [0, 1, 3, 17])
def test_a_network_gives_pytorchs_bits_for_any_batch(module: Any, fast: Any, batch: int) -> None:
    x = numbers(batch, seed=batch)
    result = fast(x)
    assert (result.shape, result.dtype) == ((batch, CLASSES), torch.float32)
    assert torch.equal(result, eager(module, x))
    assert [part.binary_layers for part in fast.report.parts] == [2] and not fast.report.rest
    assert str(fast.report).startswith("PhoneBit: the whole network: ")


def test_zeros_before_signs_can_be_exact() -> None:
    """Dyadic numbers meet exact zeros in front of signs."""
    from support.torch_networks import NETWORKS

    entry = NETWORKS["real_to_binary_resnet18"]
    module = entry.build("dyadic", 1, True).eval()
    x = entry.inputs("dyadic", 2, 2, True)
    assert torch.equal(phonebit.accelerate(module, x[:1], zeros="exact")(x), eager(module, x))


def test_its_file_is_verified(module: Any, fast: Any, tmp_path: Path) -> None:
    (tmp_path / "net.pbit").write_bytes(fast.content)
    report = verify(module, tmp_path / "net.pbit", device="cpu")
    assert report.passed


def test_several_inputs_and_a_dict_of_outputs() -> None:
    torch.manual_seed(1)
    pair = Pair().eval()
    fast = phonebit.accelerate(pair, (numbers(2), numbers(2)))
    inputs = numbers(3, seed=5), numbers(3, seed=6)
    expected, result = eager(pair, *inputs), fast(*inputs)
    assert list(result) == ["map", "scores"]
    for name, tensor in expected.items():
        assert torch.equal(result[name], tensor), name
    with pytest.raises(phonebit.InputError, match="differ in batch size"):
        fast(numbers(2), numbers(3))


@pytest.mark.parametrize("is_contiguous", [True, False])
def test_channels_last_memory_is_read_as_it_is(
    fast: Any, monkeypatch: pytest.MonkeyPatch, is_contiguous: bool
) -> None:
    seen: list[np.ndarray] = []
    forward = Network.forward

    def spy(network: Network, x: Any, out: Any = None) -> Any:
        seen.extend(x.values())
        return forward(network, x, out)

    monkeypatch.setattr(Network, "forward", spy)
    x = numbers(2)
    if not is_contiguous:
        x = x.to(memory_format=torch.channels_last)
    fast(x)
    assert np.shares_memory(seen[0], x.numpy()) != is_contiguous


def test_it_uses_as_many_threads_as_pytorch(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    forward = Network.forward

    def spy(network: Network, x: Any, out: Any = None) -> Any:
        used.append(network.threads)
        return forward(network, x, out)

    monkeypatch.setattr(Network, "forward", spy)
    before = torch.get_num_threads()
    try:
        for threads in (2, 1):
            torch.set_num_threads(threads)
            fast(numbers(1))
    finally:
        torch.set_num_threads(before)
    assert used == [2, 1]


def test_copies_pickles_and_state(module: Any, fast: Any) -> None:
    x = numbers(2, seed=9)
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert torch.equal(other(x), eager(module, x))
        assert other.report == fast.report
    changed = copy.deepcopy(module)
    changed[0].weight.data.neg_()
    target = phonebit.accelerate(changed, numbers(1))
    assert torch.equal(target(x), eager(changed, x))
    target.load_state_dict(fast.state_dict())
    assert torch.equal(target(x), eager(module, x))


def test_the_operator_says_shapes_and_strides_of_its_results(fast: Any) -> None:
    arguments = ([numbers(2)], fast.network, fast.sizes)
    torch.library.opcheck(torch.ops.phonebit.forward.default, arguments)
    pair = phonebit.accelerate(Pair().eval(), (numbers(1), numbers(1)))
    torch.library.opcheck(
        torch.ops.phonebit.forward.default, ([numbers(2), numbers(2)], pair.network, pair.sizes)
    )


def test_an_exported_program_keeps_the_operator(module: Any, fast: Any) -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(fast, (numbers(2),), dynamic_shapes=(({0: batch},),))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert [node.target for node in loaded.graph.nodes].count(
        torch.ops.phonebit.forward.default
    ) == 1
    x = numbers(5, seed=4)
    assert torch.equal(loaded.module()(x), eager(module, x))


def test_a_compiled_module_keeps_it_in_one_graph(module: Any, fast: Any) -> None:
    compiled = torch.compile(fast, backend="aot_eager", fullgraph=True, dynamic=True)
    for batch in (2, 3):
        x = numbers(batch, seed=batch)
        assert torch.equal(compiled(x), eager(module, x))


def test_damaged_bytes_are_refused(fast: Any) -> None:
    damaged = copy.deepcopy(fast)
    damaged.network[:1] ^= 1
    with pytest.raises(ModelFormatError, match="bytes are damaged; load the state that was saved"):
        damaged(numbers(1))


WRONG = {
    "not a tensor": (lambda: np.zeros((1, *SHAPE), np.float32), "not a tensor"),
    "dtype": (lambda: numbers(1).double(), r"expected torch.float32, got torch.float64\); convert"),
    "shape": (lambda: numbers(1)[..., :-1], r"expected \(N, 32, 6, 7\), got \(1, 32, 6, 6\)"),
    "no batch": (lambda: numbers(1)[0], r"expected \(N, 32, 6, 7\), got \(32, 6, 7\)"),
    "device": (lambda: numbers(1).to("meta"), r"on the CPU.*got tensor on meta.*\.cpu\(\)"),
    "NaN": (lambda: numbers(1) * float("nan"), "not finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_tensor_is_refused_in_a_sentence(fast: Any, case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises(PhoneBitError, match=message) as caught:
        fast(make())
    assert "input 'input'" in str(caught.value)


def test_a_wrong_number_of_tensors_a_moved_module_and_training_are_refused(fast: Any) -> None:
    with pytest.raises(phonebit.InputError, match=r"wrong number of tensors \(expected 1, got 2"):
        fast(numbers(1), numbers(1))
    with pytest.raises(phonebit.DeviceError, match="module on meta"):
        copy.deepcopy(fast).to("meta")(numbers(1))
    with pytest.raises(phonebit.InputError, match=r"evaluation mode only; call eval\(\)"):
        copy.deepcopy(fast).train()(numbers(1))
