"""Quantizers of Larq become exactly the step functions and kernels that its formulas give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_importer_larq import FIXTURES

from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.importers.keras.probing import recognise
from phonebit.converter.importers.keras.quantizer_functions import KINDS, UnsupportedQuantizerError
from phonebit.converter.importers.keras.quantizers import QuantizerResolver
from phonebit.converter.importers.keras.step_functions import apply, from_ordered, ordered
from phonebit.converter.ir import SMALLEST
from phonebit.converter.ops import Conv2D, Quantize, Sign

F32 = np.float32


def dorefa(x: np.ndarray, bits: int) -> np.ndarray:
    """The formula, in float32, halves to even."""
    count = F32(2**bits - 1)
    return np.round(np.clip(x, F32(0), F32(1)) * count) / count


def tern(x: np.ndarray, threshold: float) -> np.ndarray:
    t = F32(threshold)
    return np.sign(np.sign(x + t) + np.sign(x - t))


FORMULAS: dict[str, tuple[dict[str, Any], Any]] = {
    "SteHeaviside": ({}, lambda x: (x > 0).astype(F32)),
    "Larq>SteTern": ({}, lambda x: tern(x, 0.05)),
    "SteTern": ({"threshold_value": 0.3}, lambda x: tern(x, 0.3)),
    "ste_tern": ({"threshold_value": 0}, np.sign),
    **{
        name: ({"k_bit": bits, "mode": "activations"}, lambda x, bits=bits: dorefa(x, bits))
        for bits, name in enumerate(
            ["DoReFa", "DoReFaQuantizer", "Larq>DoReFa", "dorefa_quantizer"], 1
        )
    },
}


@pytest.mark.parametrize("name", FORMULAS)
def test_steps_are_at_the_very_float32_where_the_formula_jumps(name: str) -> None:
    config, formula = FORMULAS[name]
    quantizer = QuantizerResolver().resolve({"class_name": name, "config": config})
    assert isinstance(quantizer.step, Quantize)
    jumps = ordered(quantizer.step.thresholds)
    near = from_ordered(np.concatenate([jumps + offset for offset in range(-3, 4)]))
    rng = np.random.default_rng(1)
    others = np.concatenate([rng.normal(0, 1, 1000), [0, -0.0, 1, -1, 1e30, -1e30]]).astype(F32)
    for x in (near, others):
        np.testing.assert_array_equal(apply(quantizer.step, x), formula(x))
    np.testing.assert_array_equal(quantizer.step.values, np.unique(formula(others)))


def test_halves_go_to_the_even_level() -> None:
    step = KINDS["dorefa"]("DoReFa", {"k_bit": 1}).step
    assert isinstance(step, Quantize)
    assert step.thresholds[0] == np.nextafter(F32(0.5), F32(1))
    heaviside = KINDS["heaviside"]("h", {}).step
    assert isinstance(heaviside, Quantize) and heaviside.thresholds[0] == SMALLEST


def test_kernels_are_what_the_formulas_give() -> None:
    rng = np.random.default_rng(3)
    w = rng.normal(0, 1, (3, 3, 4, 5)).astype(F32)
    sign = np.where(w >= 0, F32(1), F32(-1))
    clipped = np.clip(w, -1, 1)
    mean = np.abs(w).mean()
    limited = np.tanh(w)
    expected = {
        ("sign", ()): sign,
        ("none", ()): w,
        ("magnitude_aware_sign", ()): sign * np.abs(w).mean(axis=(0, 1, 2)),
        ("magnitude_aware_sign_unclipped", ()): sign * mean,
        ("xnor_weight_scale", ()): sign * np.abs(clipped).mean(axis=(0, 1, 2)),
        ("heaviside", ()): (w > 0).astype(F32),
        ("ternary", (("threshold_value", 0.5),)): tern(w, 0.5),
        ("ternary", (("ternary_weight_networks", True),)): tern(w, 0.7 * mean),
        ("dorefa", (("k_bit", 3), ("mode", "weights"))): 2
        * dorefa(limited / (2 * np.abs(limited).max()) + F32(0.5), 3)
        - 1,
    }
    for (kind, config), kernel in expected.items():
        result = KINDS[kind](kind, dict(config)).kernel(w)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, kernel, rtol=1e-6, err_msg=kind)


def test_subnormal_latent_weights_count_as_zero() -> None:
    kernel = np.array([1e-40, -1e-40, 0, -1e-30, 1e-30], F32)
    for kind, expected in {"sign": [1, 1, 1, -1, 1], "heaviside": [0, 0, 0, 0, 1]}.items():
        np.testing.assert_array_equal(KINDS[kind](kind, {}).kernel(kernel), expected)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("DoReFa", {"k_bit": 5}, "k_bit=5"),
        ("DoReFa", {"k_bit": True}, "k_bit=True"),
        ("DoReFa", {"k_bit": 2, "mode": "both"}, "mode='both'"),
        ("SteTern", {"threshold_value": "big"}, "threshold_value='big'"),
        ("SteTern", {"threshold_value": float("nan")}, "threshold_value=nan"),
    ],
)
def test_impossible_settings_are_refused(name: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedQuantizerError, match=message):
        QuantizerResolver().resolve({"class_name": name, "config": config})


def test_layers_with_several_levels_are_expected_to_become_binary() -> None:
    graph = import_larq(FIXTURES / "quantizers.h5")
    names = ["dorefa1", "dorefa2", "dorefa3", "heaviside", "ternary", "network"]
    assert graph.expected_binary == names
    levels = {
        node.name: len(np.unique(node.op.weights))
        for node in graph.nodes
        if isinstance(node.op, Conv2D) and node.name in names
    }
    assert levels == dict(zip(names, [2, 4, 2, 2, 3, 3], strict=True))


# --- recognition by probing -----------------------------------------------------------------------


def four_levels(x: np.ndarray) -> np.ndarray:
    """Thresholds that no grid hits: -1/3, 1/7 and pi, halfway open in turn."""
    return np.select([x >= F32(np.pi), x > F32(1 / 7), x >= F32(-1 / 3)], [4.0, 0.25, 0.0], -2.0)


def test_a_step_function_is_found_with_its_exact_thresholds() -> None:
    quantizer = recognise(four_levels, "mine", None)
    step = quantizer.step
    assert isinstance(step, Quantize)
    thresholds = np.array([-1 / 3, np.nextafter(F32(1 / 7), F32(1)), np.pi], F32)
    np.testing.assert_array_equal(step.thresholds, thresholds)
    np.testing.assert_array_equal(step.values, np.array([-2, 0, 0.25, 4], F32))


def test_a_sign_with_another_decision_at_zero_keeps_it() -> None:
    step = recognise(lambda x: np.where(x > 0, 1.0, -1.0), "strict", None).step
    assert isinstance(step, Sign) and step.threshold == F32(SMALLEST)
    torch_like = recognise(np.sign, "sign", None).step
    assert isinstance(torch_like, Quantize)
    np.testing.assert_array_equal(torch_like.thresholds, np.array([0, SMALLEST], F32))


def test_a_quantizer_that_only_shares_its_name_is_judged_by_what_it_computes() -> None:
    known = QuantizerResolver().known("ste_sign")
    step = recognise(lambda x: np.where(x >= 0.5, 1.0, -1.0), "ste_sign", known).step
    assert isinstance(step, Sign) and step.threshold == 0.5


@pytest.mark.parametrize(
    "function",
    [
        np.tanh,
        lambda x: np.round(x),  # too many values
        lambda x: np.where(np.abs(x) < 1, 1.0, -1.0),  # falls again
        lambda x: np.where(x >= x.mean(), 1.0, -1.0),  # depends on the others
    ],
)
def test_other_functions_are_for_kernels_only(function: Any) -> None:
    quantizer = recognise(function, "mine", None)
    assert quantizer.step is None and "step function" in quantizer.problem
    w = np.random.default_rng(5).normal(0, 1, (2, 2, 3, 4)).astype(F32)
    np.testing.assert_array_equal(quantizer.kernel(w), function(w).astype(F32))


def test_a_random_quantizer_is_refused() -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(UnsupportedQuantizerError, match="other results each time"):
        recognise(lambda x: np.where(x >= rng.normal(0, 1, x.shape), 1.0, -1.0), "random", None)
