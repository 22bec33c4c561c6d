"""Operators without a rule of their own are read as PyTorch defines them by simpler ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402
from torch_checks import Lambda, assert_same_results  # noqa: E402

from phonebit.converter.importers.torch.importer import import_torch  # noqa: E402
from phonebit.errors import UnsupportedLayerError  # noqa: E402

pytestmark = pytest.mark.torch

Function = Callable[[Tensor], Tensor]


def with_zeros(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 0] = 0
    return y


def with_a_row(x: Tensor) -> Tensor:
    y = x * 2
    y[:, :, 1] = x[:, :, 0]
    return y


def with_corners(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:, :2, 3:] += 1
    return y


DEFINED: dict[str, Function] = {
    "addcmul": lambda x: torch.addcmul(x, x, x.sigmoid(), value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.sigmoid() + 1, value=0.5),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "lerp by a tensor": lambda x: torch.lerp(x, x * 2, x.sigmoid()),
    "glu": lambda x: F.glu(x, 1),
    "log1p": lambda x: torch.log1p(x.abs()),
    "expm1": torch.expm1,
    "log2": lambda x: torch.log2(x.abs() + 1),
    "log10": lambda x: torch.log10(x.abs() + 1),
    "exp2": torch.exp2,
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1) + 0.1, 1),
    "pairwise_distance": lambda x: F.pairwise_distance(x.flatten(1), x.flatten(1) * 2),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :, :2] * 2, 2, 1, 3),
    "slice_scatter of channels": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 0, 2),
    "select_scatter": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 1),
    "select_scatter of a row": lambda x: torch.select_scatter(x, x[:, :, 0] * 2, 2, 3),
    "assigned zeros": with_zeros,
    "an assigned row": with_a_row,
    "an assigned part": with_corners,
    "rot90": lambda x: torch.rot90(x, 1, (2, 3)),
    "nearest-exact": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "nearest-exact, uneven": lambda x: F.interpolate(x, size=(9, 11), mode="nearest-exact"),
    "linear": lambda x: F.interpolate(x.flatten(2), scale_factor=2, mode="linear"),
    "trilinear": lambda x: F.interpolate(x.unsqueeze(2), scale_factor=2, mode="trilinear"),
    "softshrink": lambda x: F.softshrink(x, 0.4),
    "hardshrink": lambda x: F.hardshrink(x, 0.4),
    "tanhshrink": F.tanhshrink,
    "softmin": lambda x: F.softmin(x, 1),
    "diff": lambda x: torch.diff(x, dim=2),
    "aminmax": lambda x: torch.aminmax(x, dim=1)[1],
    "frac": lambda x: torch.frac(x.clamp(0, 3)),
    "fill": lambda x: torch.fill(x, 2.0) + x,
    "tril": torch.tril,
    "diagonal": lambda x: torch.diagonal(x, dim1=2, dim2=3),
    "vecdot": lambda x: torch.linalg.vecdot(x, x * 2, dim=1),
    "deg2rad": torch.deg2rad,
    "logaddexp": lambda x: torch.logaddexp(x, 2 * x.flip(1)),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "cumsum of columns": lambda x: x.cumsum(-1),
    "prod": lambda x: torch.prod(x, 1),
    "prod of an odd number": lambda x: x.prod(3, keepdim=True),
    "erf": torch.erf,
    "erfc": torch.erfc,
    "hypot": lambda x: torch.hypot(x, x + 1),
    "sinh": lambda x: torch.sinh(x / 2),
    "cosh": lambda x: torch.cosh(x / 2),
    "var_mean": lambda x: torch.var_mean(x, 1)[0],
    "index_add": lambda x: x.index_add(1, torch.tensor([2, 0]), x[:, :2], alpha=2),
    "index_add, twice": lambda x: x.index_add(2, torch.tensor([1, 1]), x[:, :, :2]),
    "fold": lambda x: F.fold(F.unfold(x, 3), (6, 7), 3),
    "fold of a padded map": lambda x: F.fold(
        F.unfold(x, (3, 2), padding=1, stride=2), (6, 7), (3, 2), padding=1, stride=2
    ),
    "fold of patches": lambda x: F.fold(x.flatten(2)[:, :, :12], (7, 9), 2, stride=2),
    "avg_pool3d": lambda x: F.avg_pool3d(x[:, None], (3, 2, 2), (1, 2, 1), (1, 0, 1)),
    "local_response_norm": lambda x: F.local_response_norm(x, 3, 0.1),
    "fmax": lambda x: torch.fmax(x, 2 * x.flip(1)),
}


@pytest.mark.parametrize("name", DEFINED)
def test_operators_that_pytorch_defines_by_others_have_its_values(name: str) -> None:
    x = torch.randn(2, 4, 6, 7, generator=torch.Generator().manual_seed(3)) * 2
    assert_same_results(Lambda(lambda m, x: DEFINED[name](x)), x, tolerance=3e-6)


def test_layers_around_such_an_operator_keep_their_names_and_rules() -> None:
    module = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.GLU(1), nn.Conv2d(3, 2, 1))
    x = torch.randn(2, 4, 6, 7, generator=torch.Generator().manual_seed(3))
    graph = assert_same_results(module.eval(), x, tolerance=1e-5)
    assert {"0", "1", "3"} <= {node.name for node in graph.nodes}


def test_what_is_refused_is_what_the_user_wrote() -> None:
    module = Lambda(lambda m, x: torch.lerp(torch.erfinv(x), x, 0.5))
    with pytest.raises(UnsupportedLayerError) as caught:
        import_torch(module, input_shape=(1, 3, 2, 2))
    assert "aten.erfinv is not supported" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: torch.where(torch.isnan(x), 0.0, x), "keep them from arising"),
        (lambda x: x.sort(1)[0], "do that outside"),
        (lambda x: x.gather(1, torch.zeros(1, 1, 2, 2, dtype=torch.long)), "index_select"),
        (lambda x: torch.atan2(x, x + 9), "of constants only"),
        (lambda x: F.grid_sample(x, torch.zeros(1, 2, 2, 2), align_corners=True), "crop, flip"),
    ],
)
def test_what_has_no_definition_says_what_to_do_instead(function: Function, advice: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=advice):
        import_torch(Lambda(lambda m, x: function(x)), input_shape=(1, 3, 2, 2))
