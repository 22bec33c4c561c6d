"""Functions that are constant somewhere: of a PReLU after a ReLU, of a sign after one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch_checks import Lambda, assert_equal_to_pytorch, imported  # noqa: E402

from phonebit.converter.convert import convert  # noqa: E402
from phonebit.converter.importers.sources import ImportOptions  # noqa: E402
from phonebit.converter.importers.torch import translation  # noqa: E402
from phonebit.errors import ConversionError  # noqa: E402
from phonebit.network import Network  # noqa: E402
from phonebit.verification.verify import verify  # noqa: E402

MAPS = (1, 8, 6, 6)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-1, 2)])
@pytest.mark.parametrize("shape", [MAPS, (1, 8, 1, 1), (1, 8)])
def test_a_prelu_of_many_slopes_follows_any_clamp(
    activation: nn.Module, shape: tuple[int, ...]
) -> None:
    module = nn.Sequential(activation, nn.PReLU(8)).eval()
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor([-0.5, 0, 0.25, 0.5, 1, 2, 3, -1]))
    assert_equal_to_pytorch(imported(module, shape))


@pytest.mark.parametrize(
    "sign",
    [
        lambda x: torch.where(x >= 0, 1.0, -1.0),
        lambda x: torch.where(x < 0, 1.0, -1.0),
        lambda x: (x >= 0).float() * 3 - 1.5,
    ],
    ids=["+1", "-1", "1.5"],
)
def test_a_sign_that_is_constant_converts_and_is_reported(sign: Any, tmp_path: Path) -> None:
    def forward(m: Any, x: Any) -> Any:
        return F.conv2d(sign(torch.relu(m.norm(x))), torch.sign(m.w), padding=1)

    module = Lambda(forward, w=torch.randn(4, 8, 3, 3), norm=nn.BatchNorm2d(8)).eval()
    image = torch.randn(MAPS)
    report = convert(module, tmp_path / "net.pbit", example_input=image)
    assert any("whatever the image" in note for note in report.notes)
    result = Network.load(tmp_path / "net.pbit", device="cpu").forward(
        np.ascontiguousarray(image.permute(0, 2, 3, 1).numpy())
    )
    expected = module(image).detach().permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(result, expected)


def test_a_mistake_of_the_importer_is_an_error_that_names_the_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("out of flour")

    monkeypatch.setitem(translation.RULES, "conv2d", broken)
    module = nn.Sequential(nn.ReLU(), nn.Conv2d(8, 4, 3))
    message = r"1: aten.conv2d cannot be translated: RuntimeError: out of flour.*report it"
    with pytest.raises(ConversionError, match=message):
        imported(module, MAPS)


def test_verify_tries_images_of_one_colour(tmp_path: Path) -> None:
    """A convolution without bias gives exact zeros of black; counted as +1 they are no accident."""

    def forward(m: Any, x: Any) -> Any:
        return F.conv2d(torch.sign(m.stem(x)), torch.sign(m.w), padding=1)

    torch.manual_seed(1)
    stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
    module = Lambda(forward, stem=stem, w=torch.randn(8, 16, 3, 3)).eval()
    image = torch.randn(1, 3, 12, 12)
    fates = {}
    for zeros in ("auto", "plus"):
        file = tmp_path / f"{zeros}.pbit"
        (fates[zeros],) = convert(module, file, example_input=image, zeros=zeros).zeros.values()
        options = ImportOptions(example_input=image)
        assert verify(module, file, options=options, device="cpu").passed == (zeros == "auto")
    assert fates == {"auto": "exact", "plus": "counted as +"}
