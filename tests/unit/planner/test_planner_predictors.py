"""Predictors find the laws of made-up devices; what they learn survives its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit.errors import InputError
from phonebit.planner import OutputPart, Processor
from phonebit.planner.json_records import MAX_ARRAY_BYTES, from_record, to_record
from phonebit.planner.measure.orders import CollectionPlan, Way
from phonebit.planner.predict.codl import steps_of
from phonebit.planner.predict.evaluation import Accuracy, Prediction, evaluate, typical_errors
from phonebit.planner.predict.finegrained import CorrectedTrend
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.profile import (
    DeviceProfile,
    LatencyPredictor,
    profile_path,
    read_profile,
    write_profile,
)
from phonebit.planner.predict.samples import Samples, read_samples
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.training import (
    TREE_SETTINGS,
    Trainer,
    sharing_costs,
    split_by_layer,
    with_refusals,
)
from phonebit.planner.predict.trees import Trees
from support.made_up_device import (
    FACTS,
    LAUNCH_US,
    SYNC_US,
    US_PER_BYTE,
    Law,
    MadeUpDevice,
    collect_here,
    made_up_samples,
    proportional,
    spiked,
    stepped,
)

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")

QUICK = 120
"""Trees."""
CONV = LayerShape(
    op="binary_conv2d", in_h=28, in_w=28, in_c=128, out_h=28, out_w=28, out_c=256, input="bit",
    operand_channels=(128,), kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, bits=True,
    thresholds=True, weight_bits=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def samples_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Law], Samples]:
    known: dict[Law, Samples] = {}

    def of(law: Law) -> Samples:
        if law not in known:
            path = tmp_path_factory.mktemp("samples") / "samples.jsonl"
            known[law] = made_up_samples(path, law, 210)
        return known[law]

    return of


def trained(samples: Samples) -> tuple[DeviceProfile, dict[tuple[str, str], Accuracy]]:
    """A profile of four fifths of the layers, and its accuracy on the others' convolutions."""
    learning, testing = split_by_layer(samples.parts)
    profile = Trainer(samples, QUICK).fit(learning, samples.handovers)
    found = {}
    for prediction in evaluate(profile, testing):
        for accuracy in prediction.accuracies():
            if accuracy.family == "binary_conv2d":
                found[accuracy.predictor, accuracy.processor] = accuracy
    return profile, found


@pytest.fixture(scope="module")
def profile(samples_of: Callable[[Law], Samples]) -> DeviceProfile:
    return trained(samples_of(spiked))[0]


def columns(
    predictor: LatencyPredictor, side: Processor, cuts: range
) -> tuple[np.ndarray[Any, Any], list[OutputPart]]:
    parts = [OutputPart(0, CONV.out_h, 0, cut) for cut in cuts]
    return predictor.microseconds_of(side, [(CONV, part) for part in parts]), parts


def test_ulayer_finds_powers_and_scales_them_by_the_share(
    samples_of: Callable[[Law], Samples],
) -> None:
    profile, accuracy = trained(samples_of(proportional))
    for side in ("cpu", "gpu"):
        assert accuracy["ulayer", side].mape < 0.001
    ulayer = profile.predictor("ulayer", 1)
    parts = [(CONV, CONV.whole), (CONV, OutputPart(0, 14, 0, 256))]
    whole_us, half_us = ulayer.microseconds_of(Processor.GPU, parts)
    assert half_us == pytest.approx(whole_us / 2)


@pytest.mark.parametrize("side", Processor)
def test_codl_finds_the_steps_of_blocks(
    samples_of: Callable[[Law], Samples], side: Processor
) -> None:
    profile, accuracy = trained(samples_of(stepped))
    assert accuracy["codl", side.name.lower()].mape < 0.01
    assert accuracy["codl", side.name.lower()].mape < accuracy["ulayer", side.name.lower()].mape / 5
    predicted, parts = columns(profile.predictor("codl", 1), side, range(8, 257, 8))
    expected = np.array([stepped(CONV, side, part, 1) for part in parts])
    np.testing.assert_allclose(predicted, expected, rtol=0.02)
    jumps = np.flatnonzero(np.diff(expected) > 0.05 * expected[:-1])
    assert len(jumps) > 2
    assert set(jumps) == set(np.flatnonzero(np.diff(predicted) > 0.05 * predicted[:-1]))


def test_codl_prices_each_launch_of_a_layer(samples_of: Callable[[Law], Samples]) -> None:
    """The made-up GPU computes 8-bit layers by two kernels of unequal units."""
    samples = samples_of(stepped)
    learning, testing = split_by_layer(samples.parts)
    profile = Trainer(samples, 1).fit(learning, samples.handovers)
    both = profile.gpu.codl["split_planes+conv2d_u8_planes"]
    costs = {name: cost for (name,), cost in zip(both.terms, both.costs, strict=True)}
    assert costs["launches"] == pytest.approx(LAUNCH_US, rel=0.05)
    assert max(cost for name, cost in costs.items() if name.startswith("split_planes")) > 0
    of_u8 = [
        part
        for part in testing
        if (part.layer.family, part.processor) == ("conv2d_u8", Processor.GPU)
    ]
    found = profile.predictor("codl", 1).microseconds_of(
        Processor.GPU, [(part.layer, part.computed) for part in of_u8]
    )
    np.testing.assert_allclose(found, [part.us for part in of_u8], rtol=0.02)


def test_codl_is_as_good_as_the_noise_allows(samples_of: Callable[[Law], Samples]) -> None:
    """A law of launches, packing and blocks, under noise of 3 %, whose mean size is 2.4 %."""
    exact = samples_of(stepped)
    rng = np.random.default_rng(1)
    noisy = [replace(of, us=of.us * float(np.exp(0.03 * rng.normal()))) for of in exact.parts]
    _, accuracy = trained(replace(exact, parts=noisy))
    for side in ("cpu", "gpu"):
        assert accuracy["codl", side].mape < 0.035
        assert accuracy["codl", side].within_10 > 0.95


def test_codl_counts_the_copy_to_an_image_as_a_launch() -> None:
    def steps(line: str) -> dict[str, float]:
        device = replace(FACTS, gpu=replace(FACTS.gpu, tuning=(line,)))
        return steps_of(device, 1, CONV, Processor.GPU, OutputPart(0, 14, 0, 256))[1]

    image = steps("binary_conv2d * * * * bconv2d_image TILE_PIXELS=2 TILE_FILTERS=8")
    buffer = steps("binary_conv2d * * * * bconv2d_tiled TILE_PIXELS=2 TILE_FILTERS=8")
    assert (buffer["launches"], image["launches"]) == (1, 2)
    assert image["bytes to an image"] == 16 * 28 * 128 / 8  # 14 rows, and one next to the cut
    assert "bytes to an image" not in buffer


def test_finegrained_knows_kernels_and_waves(samples_of: Callable[[Law], Samples]) -> None:
    _, accuracy = trained(samples_of(spiked))
    finegrained = accuracy["finegrained", "gpu"]
    assert finegrained.mape < 0.2
    assert finegrained.mape < accuracy["ulayer", "gpu"].mape / 3
    assert accuracy["finegrained", "cpu"].mape < 0.12


def test_finegrained_follows_layers_beyond_all_samples(profile: DeviceProfile) -> None:
    """A line carries the trees: twice the rows of a huge layer take about twice the time."""
    huge = replace(
        CONV, in_h=400, in_w=400, out_h=400, out_w=400, in_c=512, operand_channels=(512,)
    )
    predictor = profile.predictor("finegrained", 1)
    half, whole = predictor.microseconds_of(
        Processor.CPU, [(huge, OutputPart(0, 200, 0, 256)), (huge, huge.whole)]
    )
    assert 1.6 < whole / half < 2.4


@pytest.mark.parametrize("side", Processor)
@pytest.mark.parametrize("method", ["ulayer", "codl", "finegrained"])
def test_one_part_and_several_at_once_are_predicted_alike(
    profile: DeviceProfile, method: str, side: Processor
) -> None:
    predictor = profile.predictor(method, 1)
    many, parts = columns(predictor, side, range(64, 257, 64))
    one_by_one = [predictor.microseconds_of(side, [(CONV, part)]) for part in parts]
    np.testing.assert_allclose(many, np.concatenate(one_by_one))
    assert (many > 0).all()


def test_trees_predict_what_lightgbm_predicts() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(600, 7)), rng.integers(0, 5, (600, 3))], axis=1)
    y = np.sin(3 * x[:, 0]) + (x[:, 7] > 2) * x[:, 1] + 0.1 * rng.normal(size=600)
    booster = lightgbm.train(TREE_SETTINGS, lightgbm.Dataset(x, y), num_boost_round=200)
    exact = booster.predict(x)
    for number, tree in enumerate(booster.dump_model()["tree_info"]):
        for leaf in range(tree["num_leaves"]):  # as trees store it
            stored = float(np.float16(booster.get_leaf_output(number, leaf)))
            booster.set_leaf_output(number, leaf, stored)
    np.testing.assert_allclose(booster.predict(x), exact, rtol=0, atol=2e-4)
    trees = Trees.from_lightgbm(booster.dump_model())
    unseen = np.concatenate([rng.normal(size=(500, 7)) * 3, rng.integers(-2, 9, (500, 3))], axis=1)
    for rows in (x, unseen, unseen[:1]):
        np.testing.assert_allclose(trees.predict(rows), booster.predict(rows), rtol=0, atol=1e-6)
    again = from_record(Trees, json.loads(json.dumps(to_record(trees))), "trees")
    np.testing.assert_array_equal(again.predict(unseen), trees.predict(unseen))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("feature", "not base64!", "model.trees.feature: damaged"),
        ("feature", "AAA", "model.trees.feature: damaged"),
        ("feature", to_record(np.full(1, -1, np.int16)), "lengths that do not fit"),
        ("thresholds", to_record(np.zeros(0)), "lengths that do not fit"),
        ("leaves", to_record(np.zeros(MAX_ARRAY_BYTES + 4, np.int8)), "at most 16777216 bytes"),
    ],
)
def test_damaged_trees_are_refused(
    profile: DeviceProfile, field: str, value: object, message: str
) -> None:
    record = to_record(profile.gpu.finegrained["bconv2d_tiled"])
    record["trees"][field] = value
    with pytest.raises(InputError, match=message):
        from_record(CorrectedTrend, record, "model")


def test_trees_of_fewer_features_are_refused(profile: DeviceProfile) -> None:
    record = to_record(profile.gpu.finegrained["bconv2d_tiled"])
    for features, message in (([], "features outside"), (["x"] * 100, "over other features")):
        with pytest.raises(InputError, match=message):
            from_record(CorrectedTrend, {**record, "features": features}, "model")


@pytest.mark.parametrize("feature", [[], [0, -1], [0], [-1, 0, -1], [0, 0, -1, -1]])
def test_trees_without_sides_are_refused(feature: list[int]) -> None:
    """A file must not make the evaluation read outside of its tables."""
    nodes = np.array(feature, np.int16)
    inner = int((nodes >= 0).sum())
    with pytest.raises(InputError, match="a node without sides"):
        Trees(nodes, np.zeros(inner), np.zeros(len(feature) - inner, np.float16))


def test_profile_survives_its_file(profile: DeviceProfile, tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.json", profile)
    again = read_profile(tmp_path / "profile.json")
    assert to_record(again) == to_record(profile)
    assert again.device == profile.device
    assert again.key(1) == FACTS.keys[1]
    for method in ("ulayer", "codl", "finegrained"):
        for side in Processor:
            mine, _ = columns(profile.predictor(method, 1), side, range(8, 257, 8))
            theirs, _ = columns(again.predictor(method, 1), side, range(8, 257, 8))
            np.testing.assert_array_equal(mine, theirs)


def test_margins_follow_the_errors(profile: DeviceProfile) -> None:
    errors = {"finegrained": 0.12, "codl": 0.8, "ulayer": 0.001}
    known = replace(profile, errors=errors)
    margins = [known.margin(method) for method in (*errors, "search")]
    assert margins == [0.12, 0.5, 0.02, 0.02]


def test_typical_errors_are_medians_over_both_processors() -> None:
    def prediction(name: str, side: Processor, ratios: list[float]) -> Prediction:
        measured = np.full(len(ratios), 50.0)
        return Prediction(name, side, 0, ("x",) * len(ratios), measured, measured * ratios)

    found = typical_errors(
        [
            prediction("codl", Processor.GPU, [1.1, 0.7]),
            prediction("codl", Processor.CPU, [1.2]),
            prediction("finegrained", Processor.CPU, [2.0]),
        ]
    )
    assert found == {"codl": pytest.approx(0.2), "finegrained": pytest.approx(1.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a device profile"),
        ("[1, 2]", "not a device profile"),
        ('{"phonebit_profile": 99}', "version of the profile"),
        ('{"phonebit_profile": 7}', "damaged device profile"),
        (
            '{"phonebit_profile": 7, "device": 3, "gpu": null, "sharing": {}, "cpu": {}}',
            "profile.device: damaged",
        ),
    ],
)
def test_files_that_are_no_profiles_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_profile(path)
    assert str(path) in str(error.value)


def test_profile_of_other_features_is_refused(profile: DeviceProfile) -> None:
    record = json.loads(json.dumps(to_record(profile)))
    features = record["gpu"]["finegrained"]["bconv2d_tiled"]["features"]
    features[features.index("first_channel")] = "colours"
    predictor = from_record(DeviceProfile, record, "profile").predictor("finegrained", 1)
    with pytest.raises(InputError, match=r"other features than this version.*colours"):
        predictor.microseconds_of(Processor.GPU, [(CONV, CONV.whole)])


def test_profile_without_a_model_of_all_samples_is_refused(profile: DeviceProfile) -> None:
    record = json.loads(json.dumps(to_record(profile)))
    del record["gpu"]["codl"]["*"]
    with pytest.raises(InputError, match="codl: no model"):
        from_record(DeviceProfile, record, "profile")


def test_what_was_not_measured_is_named(profile: DeviceProfile) -> None:
    with pytest.raises(InputError, match="so many CPU threads"):
        profile.predictor("codl", 7)
    with pytest.raises(InputError, match="no such predictor"):
        profile.predictor("guess", 1)
    for missing in ("cpu", "sharing"):
        with pytest.raises(InputError, match="costs of sharing were not measured"):
            replace(profile, **{missing: {}})


def test_samples_of_one_processor_train_nothing(samples_of: Callable[[Law], Samples]) -> None:
    samples = samples_of(spiked)
    of_gpu = [part for part in samples.parts if part.processor == Processor.GPU]
    with pytest.raises(InputError, match="of both processors"):
        Trainer(replace(samples, parts=of_gpu))


def test_sharing_costs_are_found(profile: DeviceProfile, tmp_path: Path) -> None:
    by_svm = profile.sharing_cost("finegrained", 1)
    assert by_svm.microseconds(1000, 1000) == pytest.approx(SYNC_US)
    assert profile.sharing_cost("codl", 1).sync_us >= by_svm.sync_us
    path = tmp_path / "copied.jsonl"
    device = MadeUpDevice(ways=(Way("copy", "events"),))
    collect_here(path, FACTS, CollectionPlan(layers=1, turns=1), device)
    costs = sharing_costs(read_samples(path).handovers)
    assert list(costs) == [1]
    assert costs[1].microseconds(0, 0) == pytest.approx(10 * SYNC_US, rel=0.01)
    assert costs[1].microseconds(4000, 8000) == pytest.approx(
        10 * SYNC_US + 12000 * US_PER_BYTE, rel=0.01
    )


def test_sharing_costs_are_never_negative() -> None:
    moved = [(1000, 0), (2000, 0), (0, 1000), (0, 3000)]
    cost = SharingCost.fit(moved, [5.0, 4.0, 6.0, 9.0])
    assert min(cost.sync_us, cost.us_per_byte_to_cpu, cost.us_per_byte_to_gpu) >= 0
    assert cost.us_per_byte_to_gpu > 0


def test_parts_of_a_layer_stay_together(samples_of: Callable[[Law], Samples]) -> None:
    parts = samples_of(spiked).parts
    learning, testing = split_by_layer(parts)
    layers = [{sample.layer for sample in side} for side in (learning, testing)]
    assert not layers[0] & layers[1]
    assert len(learning) + len(testing) == len(parts)
    assert 0.1 < len(layers[1]) / len(layers[0] | layers[1]) < 0.3


def test_kernels_that_the_runtime_passes_over_are_found(
    samples_of: Callable[[Law], Samples],
) -> None:
    parts = samples_of(spiked).parts
    sound = with_refusals(FACTS.gpu, parts)
    assert sound.refused == sound.refused_for_cuts == ()
    better = "binary_conv2d window * * * bconv2d_tiled TILE_PIXELS=4 TILE_FILTERS=32"
    gpu = replace(FACTS.gpu, tuning=(better, *FACTS.gpu.tuning))
    refusing = with_refusals(gpu, parts)
    for refused in (refusing.refused, refusing.refused_for_cuts):
        assert len(refused) == 1
        assert refused[0].startswith("bconv2d_tiled") and "TILE_FILTERS=32" in refused[0]
    for part in (CONV.whole, OutputPart(0, 28, 0, 64)):
        assert refusing.launches(CONV, part) == FACTS.gpu.launches(CONV, part)
    only_cut = replace(refusing, refused=())
    assert only_cut.launches(CONV, CONV.whole) != refusing.launches(CONV, CONV.whole)
    assert only_cut.launches(CONV, part) == refusing.launches(CONV, part)


def test_profiles_are_kept_by_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path))
    one, other = profile_path("a | b"), profile_path("a | c")
    assert one.parent == tmp_path / "profiles"
    assert one != other
