"""``phonebit plan``: plans into files, explanations, images, and errors for people."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phonebit.converter.ops import Softmax
from phonebit.devices.loading import EngineOptions
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner import ExecutionPlan, Processor, planning_files, stored_plans, verify_plan
from phonebit.planner.measure import engines
from phonebit.planner.predict.profile import profile_path, write_profile
from support.cli_process import Cli
from support.engine_net import Net
from support.made_up_profile import KEY, made_up_profile
from support.planner_times import contents_of, straight


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "device.json"
    write_profile(path, made_up_profile())
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "straight.pbit"
    path.write_bytes(file_bytes(straight(3)))
    return path


@pytest.mark.parametrize("method", ["ulayer", "codl", "finegrained", "combined"])
def test_plan_is_in_the_file_and_sound(
    cli: Cli, model: Path, profile: Path, tmp_path: Path, method: str
) -> None:
    planned = tmp_path / "planned.pbit"
    done = cli("plan", model, "--cost-model", profile, "-o", planned, "--method", method)
    assert done.code == 0, done
    contents = read_contents(planned)
    (plan,) = stored_plans(contents)
    assert (plan.device, plan.method) == (KEY, method)
    assert plan.predicted_ms > 0
    verify_plan(contents, plan)
    assert "ms" in done.out
    assert "planned.pbit" in done.out


def test_planning_again_replaces_the_plan_and_nothing_else(
    cli: Cli, model: Path, profile: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in_place.pbit"
    file.write_bytes(model.read_bytes())
    for method in ("codl", "ulayer"):
        assert cli("plan", file, "--cost-model", profile, "-o", file, "--method", method).code == 0
    contents = read_contents(file)
    assert [plan.method for plan in stored_plans(contents)] == ["ulayer"]
    bare = replace(contents, plans=contents.plans[:0], plan_parts=contents.plan_parts[:0])
    original = read_contents(model)
    assert bytes(bare.data) == bytes(original.data)
    assert (bare.ops == original.ops).all()


def test_explain_has_a_line_for_each_layer(
    cli: Cli, model: Path, profile: Path, tmp_path: Path
) -> None:
    out = tmp_path / "planned.pbit"
    done = cli("plan", model, "--cost-model", profile, "-o", out, "--method", "codl", "--explain")
    for name in ("sign", "conv0", "conv1", "conv2", "best rows", "best channels", "GPU", "CPU"):
        assert name in done.out
    plain = cli("plan", model, "--cost-model", profile, "-o", out, "--method", "codl")
    assert "conv1" not in plain.out


def test_json_is_one_document(cli: Cli, model: Path, profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "planned.pbit"
    document = cli("plan", model, "--cost-model", profile, "-o", out, "--json").document
    assert document["device"] == KEY
    assert document["method"] == "combined"
    assert len(document["layers"]) == 4
    assert document["plan_us"] <= document["home_us"]
    assert document["measurements"] == 0


def test_profiles_are_found_by_key(cli: Cli, model: Path, tmp_path: Path) -> None:
    kept = profile_path(KEY)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_profile(kept, made_up_profile())
    assert cli("plan", model, "--cost-model", KEY, "-o", tmp_path / "planned.pbit").code == 0
    kept.unlink()


def test_errors_say_what_to_do(cli: Cli, model: Path, profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "planned.pbit"
    missing = cli.refused("plan", model, "--cost-model", "no phone", "-o", out)
    assert "no such device profile" in missing
    assert "phonebit collect" in missing
    assert "threads" in cli.refused(
        "plan", model, "--cost-model", profile, "-o", out, "--threads", 3
    )
    assert cli("plan", model, "--cost-model", profile, "-o", out, "--method", "best").code == 2
    assert not out.exists()


def test_rough_predictions_are_called_rough(cli: Cli, model: Path, tmp_path: Path) -> None:
    for error, is_rough in ((0.09, False), (0.16, True)):
        profile = tmp_path / "device.json"
        write_profile(profile, replace(made_up_profile(), errors={"finegrained": error}))
        done = cli("plan", model, "--cost-model", profile, "-o", tmp_path / "planned.pbit")
        assert ("typically 16% off; plan with --measure" in done.out) == is_rough, done.out


def test_a_damaged_profile_is_named(cli: Cli, model: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    text = cli.refused("plan", model, "--cost-model", damaged, "-o", tmp_path / "planned.pbit")
    assert "damaged.json" in text


def test_a_network_without_layers_to_cut_is_refused(
    cli: Cli, profile: Path, tmp_path: Path
) -> None:
    net = Net("uncut")
    contents = contents_of(net.done(net.op("scores", Softmax(), net.input("x", (1, 1, 10)))))
    file = tmp_path / "uncut.pbit"
    file.write_bytes(file_bytes(contents))
    text = cli.refused("plan", file, "--cost-model", profile, "-o", tmp_path / "planned.pbit")
    assert "no layer" in text
    assert "device='gpu'" in text


class FakeEngine:
    """An engine on both processors that takes a microsecond for each row and channel.

    Args:
        plan_key: Of the device.
        times_as_long: Of an inference, as its layers take by themselves.
    """

    def __init__(self, plan_key: str, times_as_long: float = 1.0) -> None:
        self.plan_key = plan_key
        self.times_as_long = times_as_long
        self.plan: ExecutionPlan | None = None
        self.threads = 1
        self.layers = [type("Layer", (), {"name": f"layer{index}"})() for index in range(4)]
        self.measured: list[int] = []
        self.passes: list[ExecutionPlan | None] = []

    def open(self, _path: Path, _device: str, options: EngineOptions) -> FakeEngine:
        """The same device with another plan."""
        other = copy(self)
        other.plan = options.get("plan")
        return other

    def measure_layer(
        self,
        index: int,
        cpu: tuple[int, int, int, int] | None,
        gpu: tuple[int, int, int, int] | None,
        repeats: int,
    ) -> Mapping[str, float]:
        self.measured.append(index)
        cpu_us, gpu_us = (
            0.0 if side is None else 1.0 * (side[1] - side[0]) * (side[3] - side[2])
            for side in (cpu, gpu)
        )
        return {"cpu_us": cpu_us, "gpu_us": gpu_us, "total_us": max(cpu_us, gpu_us) + 5}

    def measure_pass(self, repeats: int) -> Mapping[str, Any]:
        assert repeats > 0 and self.plan is not None
        self.passes.append(self.plan)
        sides = {side: [0.0] * len(self.layers) for side in Processor}
        for part in self.plan.parts:
            us = part.part.rows * part.part.channels
            sides[part.processor][part.layer] = us * self.times_as_long
        layers = zip(*sides.values(), strict=True)
        total_us = sum(max(us) + (5 if min(us) else 0) for us in layers)
        return {
            "total_us": total_us,
            "cpu_us": sides[Processor.CPU],
            "gpu_us": sides[Processor.GPU],
        }


@pytest.mark.parametrize("options", [[], ["--measure"], ["--method", "search"], ["--predict"]])
def test_measuring_asks_the_device(
    cli: Cli,
    model: Path,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    """By default the profile's device, where it is here."""
    engine = FakeEngine(KEY)
    monkeypatch.setattr(engines, "open_engine", engine.open)
    gpu = type("Device", (), {"name": "Test GPU"})
    monkeypatch.setattr(planning_files, "gpu_device", lambda _name: gpu)
    out = tmp_path / "planned.pbit"
    document = cli("plan", model, "--cost-model", profile, "-o", out, "--json", *options).document
    is_measured = "--predict" not in options
    assert bool(engine.measured) == (document["measurements"] > 0) == is_measured
    assert bool(engine.passes) == (document["check"] is not None) == is_measured
    conv = document["layers"][1]
    assert (conv["predicted"] is None) == ("search" in options)
    if is_measured:
        assert conv["measured"]["gpu_us"] == 16 * 64
        assert engine.passes[-1] is not None
        assert stored_plans(read_contents(out))[0].parts in {
            plan.parts for plan in engine.passes if plan is not None
        }


@pytest.mark.parametrize("times_as_long", [1.0, 1.4])
def test_the_prediction_is_printed_next_to_the_inference(
    cli: Cli,
    model: Path,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times_as_long: float,
) -> None:
    """Layers that take longer inside the network are corrected, and predicted again."""
    engine = FakeEngine(KEY, times_as_long)
    monkeypatch.setattr(engines, "open_engine", engine.open)
    arguments = (
        "plan",
        model,
        "--cost-model",
        profile,
        "--measure",
        "-o",
        tmp_path / "planned.pbit",
    )
    check = cli(*arguments, "--json").document["check"]
    assert abs(check["error"]) <= 0.05
    assert check["predicted_us"] / check["pass_us"] - 1 == pytest.approx(check["error"])
    out = cli(*arguments).out
    assert f"{check['pass_us'] / 1000:.3f} ms measured" in out
    assert f"predicted {check['predicted_us'] / 1000:.3f} ms" in out
    assert f"{abs(check['error']):.1%} too" in out
    assert "differ by more than" not in out


@pytest.mark.parametrize("method", ["ulayer", "codl", "finegrained", "combined", "search"])
def test_without_a_profile_everything_is_measured_here(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    engine = FakeEngine("this device")
    monkeypatch.setattr(engines, "open_engine", engine.open)
    out = tmp_path / "planned.pbit"
    document = cli("plan", model, "-o", out, "--json", "--method", method).document
    assert (document["device"], document["method"]) == ("this device", method)
    assert document["check"]["rounds"] == 1
    assert document["layers"][1]["predicted"] is None
    assert document["split"]
    verify_plan(read_contents(out), stored_plans(read_contents(out))[0])
    has_all_cuts = document["measurements"] >= 25
    assert has_all_cuts == (method == "search"), document["measurements"]
    assert "train-predictor" in cli.refused("plan", model, "-o", out, "--predict")


def test_layers_and_inferences_are_measured_in_a_precision(
    cli: Cli, model: Path, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With cost models, too, which only select what is measured: they predict exact precision."""
    engine, precisions = FakeEngine(KEY), []

    def open_engine(path: Path, device: str, options: EngineOptions) -> FakeEngine:
        precisions.append(options.get("precision"))
        return engine.open(path, device, options)

    monkeypatch.setattr(engines, "open_engine", open_engine)
    arguments = "plan", model, "-o", tmp_path / "planned.pbit", "--precision", "fast"
    for models in ([], ["--cost-model", profile]):
        document = cli(*arguments, "--json", *models).document
        assert document["precision"] == "fast" and document["measurements"] > 0
    assert set(precisions) == {"fast"}
    refused = cli.refused(*arguments, "--cost-model", profile, "--predict")
    assert "cost models predict exact precision only" in refused and "fast" in refused


def test_elsewhere_plans_are_predicted(
    cli: Cli, model: Path, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a GPU of the same name has another driver."""
    gpu = type("Device", (), {"name": "Test GPU"})
    monkeypatch.setattr(planning_files, "gpu_device", lambda _name: gpu)
    monkeypatch.setattr(engines, "open_engine", FakeEngine("another driver").open)
    out = tmp_path / "planned.pbit"
    document = cli("plan", model, "--cost-model", profile, "-o", out, "--json").document
    assert document["measurements"] == 0


def test_measuring_on_another_device_is_refused(
    cli: Cli, model: Path, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FakeEngine("another device")
    monkeypatch.setattr(engines, "open_engine", other.open)
    out = tmp_path / "planned.pbit"
    text = cli.refused("plan", model, "--cost-model", profile, "-o", out, "--measure")
    assert "another device" in text
    assert KEY in text
    assert not out.exists()
