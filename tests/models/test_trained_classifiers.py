"""The classifiers trained in PyTorch: the engine's logits equal PyTorch's to the last bit.

The shipped checkpoints run on the first test images of Fashion-MNIST, if they are there; networks
with random weights, finished by the recipe's own last step, run on made-up images.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from benchmarks import accuracy  # noqa: E402
from phonebit import Network  # noqa: E402
from phonebit.models.trained import trained_file  # noqa: E402
from training import packed_checkpoint  # noqa: E402
from training.fashion_mnist_torch import evaluate, fitting  # noqa: E402
from training.fashion_mnist_torch.dyadic import check_exact, make_dyadic  # noqa: E402
from training.fashion_mnist_torch.images import DEFAULT_DIR, TensorSplit  # noqa: E402
from training.fashion_mnist_torch.layers import is_binary  # noqa: E402
from training.fashion_mnist_torch.networks import BINARY, NETWORKS  # noqa: E402
from training.trained_files import CLASSIFIERS, write_classifier  # noqa: E402

SEED = 3
IMAGES = 200
FOLDER = Path(evaluate.__file__).parent
MAX_BYTES = 1_000_000
TRAINED = json.loads((FOLDER / "training.json").read_text())["networks"]


def made_up_split(count: int) -> TensorSplit:
    """Images of a bright rectangle with noise on level 0, labelled by its height."""
    generator = torch.Generator().manual_seed(SEED)
    canvas = torch.zeros(count, 36, 36, dtype=torch.uint8)
    labels = torch.randint(0, 10, (count,), generator=generator)
    for image, label in zip(canvas, labels, strict=True):
        height = 8 + 2 * int(label)
        noise = torch.randint(100, 256, (height, 16), generator=generator)
        image[4 : 4 + height, 8:24] = noise.to(torch.uint8)
    return TensorSplit(canvas, labels)


def untrained(name: str) -> Any:
    """A binary network whose statistics follow its layers, finished as after a training."""
    torch.manual_seed(SEED)
    network = NETWORKS[name]("binary").train()
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
                layer.momentum = 1.0
                layer.weight.copy_(torch.randn(layer.num_features))
                layer.bias.copy_(torch.randn(layer.num_features) / 2)
        network(made_up_split(16).inputs())
    make_dyadic(network)
    return network


@pytest.fixture(scope="module", params=list(NETWORKS))
def network(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """Each network, untrained."""
    return request.param, untrained(request.param)


def test_logits_of_the_engine_equal_pytorch(network: tuple[str, Any], tmp_path: Path) -> None:
    name, module = network
    file = tmp_path / "network.pbit"
    file.write_bytes(evaluate.convert(module, name).content)
    split = made_up_split(24)
    (result,) = evaluate.compare(module, [Network.load(file, "cpu")], split)
    assert result.equal == result.images == 24
    assert len(torch.unique(module(split.inputs()))) > 200, "logits that are alike show nothing"


def test_compare_counts_images_whose_logits_differ(tmp_path: Path) -> None:
    module = untrained("resnet18_small")
    file = tmp_path / "network.pbit"
    file.write_bytes(evaluate.convert(module, "resnet18_small").content)
    with torch.no_grad():
        module.logits.bias[3] += 2.0**-12
    (result,) = evaluate.compare(module, [Network.load(file, "cpu")], made_up_split(4))
    assert result.equal == 0


def test_float32_is_exact_and_checked(network: tuple[str, Any]) -> None:
    _, module = network
    inputs = made_up_split(4).inputs()
    check_exact(module, inputs)
    rounding = copy.deepcopy(module)
    with torch.no_grad():
        rounding.logits.weight /= 3
    with pytest.raises(ValueError, match="float32 logits differ"):
        check_exact(rounding, inputs)


def test_layers_whose_values_need_more_than_24_bits_get_a_larger_unit() -> None:
    module = NETWORKS["resnet18_small"]("binary")
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.weight.uniform_(0, 0.01)
        norm = module.blocks[2].norm
        norm.weight[5] = 1.0  # 288 products: up to 288, more than 2^24 units of 2^-16
    make_dyadic(module)
    assert float(norm.weight.detach().max()) == 1.0
    assert torch.equal(norm.weight * 2**15, (norm.weight * 2**15).round())
    other = module.blocks[1].norm.weight
    assert not torch.equal(other * 2**15, (other * 2**15).round())
    check_exact(module, made_up_split(4).inputs())


def test_checkpoint_round_trip(network: tuple[str, Any], tmp_path: Path) -> None:
    name, module = network
    path = tmp_path / "network.pth"
    packed_checkpoint.save(module, name, path)
    assert path.stat().st_size < MAX_BYTES
    loaded_name, loaded = packed_checkpoint.load(path, BINARY)
    assert loaded_name == name
    state = loaded.state_dict()
    for key, tensor in module.state_dict().items():
        if tensor.is_floating_point():
            assert torch.equal(state[key], tensor), key


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.pth"
    torch.save({"state_dict": {}}, path)
    with pytest.raises(ValueError, match="not a checkpoint"):
        packed_checkpoint.load(path, BINARY)
    packed_checkpoint.save(NETWORKS["resnet18_small"]("binary"), "resnet18_small", path)
    content = torch.load(path, weights_only=True)
    torch.save({**content, "network": "vgg_small"}, path)
    with pytest.raises(ValueError, match="vgg_small has other tensors than the file"):
        packed_checkpoint.load(path, BINARY)
    content["bits"]["stem.weight"] = content["bits"]["stem.weight"][:-1]
    torch.save(content, path)
    with pytest.raises(ValueError, match=r"stem\.weight is torch\.uint8\[35\]"):
        packed_checkpoint.load(path, BINARY)


def test_training_moves_latent_weights_and_keeps_them_clipped() -> None:
    torch.manual_seed(SEED)
    module = NETWORKS["resnet18_small"]("binary")
    before = [layer.weight.detach().clone() for layer in module.modules() if is_binary(layer)]
    how = fitting.Schedule(epochs=2, batch_size=4, learning_rate=1e-3, latent_rate=2.0)
    log = fitting.fit(module, made_up_split(8), how, SEED)
    assert [row["epoch"] for row in log["epochs"]] == [1, 2]
    after = [layer.weight.detach() for layer in module.modules() if is_binary(layer)]
    for old, new in zip(before, after, strict=True):
        assert float(new.abs().max()) <= 1
        assert not torch.equal(old.sign(), new.sign())


def test_augmented_images_are_shifted_and_mirrored_wholes() -> None:
    split = made_up_split(6)
    chosen = torch.tensor([5, 0, 3, 3])
    augmented = split.augmented(chosen, torch.Generator().manual_seed(SEED))
    plain = split.inputs()[chosen]
    assert augmented.shape == plain.shape and augmented.dtype == torch.float32
    assert not torch.equal(augmented, plain)
    assert torch.equal(augmented.sort(-1)[0].sum((1, 2, 3)), plain.sum((1, 2, 3)))


def test_a_section_is_made_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = {"accuracy": 0.9123, "pictures_with_equal_logits": 10_000}
    row = {
        "network": "vgg_small",
        "pictures": 10_000,
        "accuracy_of_float_twin": 0.9456,
        "accuracy_in_torch": 0.9123,
        "engine": {"cpu": engine},
        "layers_in_8_bits": {"accuracy": 0.9134, "pictures_with_same_class": 9_995},
        "checkpoint_bytes": 736_000,
        "pbit_bytes": 901_000,
    }
    training = {"command": "train", "device": "a GPU", "date": "2026-01-01", "seconds": 90}
    results = {
        "command": "evaluate",
        "date": "2026-01-02",
        "versions": {"torch": "2.13"},
        "training": training,
        "networks": [row],
    }
    stored = accuracy.read_results
    made_up = {"accuracy.json": results}
    monkeypatch.setattr(accuracy, "read_results", lambda name: made_up.get(name) or stored(name))
    numbers = "94.56% | 91.23% | 91.23% | 10,000 of 10,000 | 91.34% | 9,995 | 736 kB | 901 kB"
    expected = f"| VGG-small | {numbers} |"
    assert expected in accuracy.section().splitlines()


@pytest.mark.parametrize("name", TRAINED)
def test_checkpoints_and_shipped_files_equal_pytorch_and_reach_their_accuracy(
    name: str, tmp_path: Path
) -> None:
    path = FOLDER / f"{name}.pth"
    if not DEFAULT_DIR.is_dir():
        pytest.skip(f"{DEFAULT_DIR} is absent: apt-get install dataset-fashion-mnist")
    assert path.stat().st_size < MAX_BYTES
    expected = TRAINED[name]["binary"]["test_accuracy"]
    _, module = packed_checkpoint.load(path, BINARY)
    shipped = {known: trained_file(key) for key, known in CLASSIFIERS.items()}
    if not (file := shipped.get(name, tmp_path / "network.pbit")).exists():
        write_classifier(name, file)
    split = TensorSplit.load(DEFAULT_DIR, "t10k", limit=IMAGES)
    with torch.no_grad():
        logits = module(split.inputs()).numpy()
    images = split.levels()[:, 2:-2, 2:-2, None].numpy()
    np.testing.assert_array_equal(Network.load(file, "cpu")(np.ascontiguousarray(images)), logits)
    right = np.mean(logits.argmax(1) == split.labels.numpy())
    deviation = np.sqrt(expected * (1 - expected) / IMAGES)
    assert np.isclose(right, expected, atol=3 * deviation)
