"""The tuner's search on a network with known times, and the store of what it found."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from math import inf
from pathlib import Path

import pytest

from phonebit import DeviceError, InputError, PhoneBitWarning
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.devices.tuning import MIN_GAIN, LayerTuning, Level, tunable_layers, tune_layers
from phonebit.devices.tuning_store import (
    cache_folder,
    export_tuning,
    merged_table,
    store_tuning,
    stored_tuning,
    tuning_file,
)
from phonebit.layer_info import LayerInfo

LEVELS: tuple[Level, ...] = ("rapid", "normal", "exhaustive")


def grid(kernel: str, **parameters: tuple[int, ...]) -> list[str]:
    """All combinations of a made-up kernel's parameters."""
    return [
        " ".join([kernel, *(f"{name}={v}" for name, v in zip(parameters, values, strict=True))])
        for values in product(*parameters.values())
    ]


CANDIDATES = [
    *grid("made_up_tiles", P=(1, 2, 4, 8), F=(2, 4, 8), G=(32, 64)),
    *grid("made_up_split", G=(16, 32, 64)),
]


@dataclass
class FakeNetwork:
    """Layers with given candidates; times by choice, 1 ms where not given."""

    candidate_lists: list[list[str]]
    times_ms: dict[str, float] = field(default_factory=dict)
    unequal: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    signatures: list[str] = field(default_factory=list)
    measured: list[tuple[int, str]] = field(default_factory=list)
    times_ms_of_many: dict[str, float] = field(default_factory=dict)
    largest_batch: int = 64

    @property
    def layers(self) -> tuple[LayerInfo, ...]:
        return tuple(
            LayerInfo(f"layer{i}", "binary_conv2d", "", 1, True, 1, (), ())
            for i in range(len(self.candidate_lists))
        )

    def candidates(self, index: int) -> list[str]:
        return self.candidate_lists[index]

    def measure_choice(
        self, index: int, choice: str, batch: int = 1, repeats: int = 10
    ) -> tuple[float, bool]:
        self.measured.append((index, choice))
        if batch > self.largest_batch:
            raise InputError("batch")
        if choice in self.broken:
            raise DeviceError("CL_OUT_OF_RESOURCES")
        latency_ms = self.times_ms.get(choice, 1.0) * batch
        if batch > 1:
            latency_ms = self.times_ms_of_many.get(choice, latency_ms)
        return latency_ms, choice not in self.unequal

    def tuning_line(self, index: int, choice: str) -> str:
        shape = self.signatures[index] if self.signatures else f"shape{index}"
        return f"binary_conv2d {shape} vendor family device {choice}"


def only(
    network: FakeNetwork, level: Level = "exhaustive", batches: tuple[int, ...] = (1,)
) -> LayerTuning:
    (result,) = tune_layers(network, level, batches)
    return result


def valley(choice: str) -> float:
    """Times with one minimum, at P=4 F=8 G=64, that coordinate descent can walk to."""
    parsed = KernelChoice.parse(choice)
    values = dict(parsed.parameters)
    if parsed.kernel == "made_up_split":
        return 1.9
    return 1 + abs(values["P"] - 4) / 8 + abs(values["F"] - 8) / 8 + (values["G"] != 64) / 8


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork([CANDIDATES], {text: valley(text) for text in CANDIDATES})


@pytest.mark.parametrize("level", ["normal", "exhaustive"])
def test_the_fastest_choice_is_found(network: FakeNetwork, level: Level) -> None:
    result = only(network, level)
    assert result.before == CANDIDATES[0]
    assert result.after == "made_up_tiles P=4 F=8 G=64"
    assert result.line == f"binary_conv2d shape0 vendor family device {result.after}"
    assert (result.before_ms, result.after_ms) == (valley(CANDIDATES[0]), 1.0)


def test_levels_differ_in_effort(network: FakeNetwork) -> None:
    rapid, normal, exhaustive = (only(network, level).measured for level in LEVELS)
    assert rapid == 2 < normal < exhaustive == len(CANDIDATES)  # each kernel's start


def test_no_candidate_is_measured_twice_but_for_the_last_comparison(network: FakeNetwork) -> None:
    result = only(network, "normal")
    counts = Counter(choice for _, choice in network.measured)
    assert {c for c, count in counts.items() if count > 1} == {result.before, result.after}
    assert len(counts) == result.measured


def test_normal_leaves_slow_kernels_alone() -> None:
    times = {text: 10.0 if text.startswith("made_up_split") else 1.0 for text in CANDIDATES}
    network = FakeNetwork([CANDIDATES], times)
    only(network, "normal")
    split = {c for _, c in network.measured if c.startswith("made_up_split")}
    assert len(split) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_wrong_results_are_never_chosen(network: FakeNetwork, level: Level) -> None:
    network.unequal = set(CANDIDATES[1:])
    result = only(network, level)
    assert result.after == result.before == CANDIDATES[0]
    assert set(result.refused) <= network.unequal


def test_a_candidate_that_fails_is_refused_and_the_search_goes_on(network: FakeNetwork) -> None:
    network.broken = {"made_up_tiles P=4 F=8 G=64"}
    result = only(network)
    assert result.refused == {"made_up_tiles P=4 F=8 G=64": "CL_OUT_OF_RESOURCES"}
    assert result.after_ms < result.before_ms < inf


def test_a_result_that_is_unequal_only_once_is_refused(network: FakeNetwork) -> None:
    best = "made_up_tiles P=4 F=8 G=64"

    def sometimes(index: int, choice: str, batch: int = 1, repeats: int = 10) -> tuple[float, bool]:
        network.measured.append((index, choice))
        return valley(choice), choice != best or network.measured.count((index, best)) != 3

    network.measure_choice = sometimes  # type: ignore[method-assign]
    assert best in only(network).refused


def test_noise_is_no_gain(network: FakeNetwork) -> None:
    times = dict.fromkeys(CANDIDATES, 1.0)
    times[CANDIDATES[3]] = 1.0 - MIN_GAIN / 2
    network.times_ms = times
    result = only(network)
    assert result.after == result.before
    assert result.after_ms == result.before_ms == 1.0


def test_what_is_slower_for_many_images_is_not_used(network: FakeNetwork) -> None:
    best, *others = sorted(CANDIDATES, key=valley)
    network.times_ms_of_many = {best: 1.1 * 32 * valley(CANDIDATES[0])}
    assert only(network).after == best
    result = only(network, batches=(1, 32))
    assert result.after == others[0]
    assert (result.before_ms, result.after_ms) == (valley(CANDIDATES[0]), valley(others[0]))
    assert not result.refused
    network.times_ms_of_many |= {c: 1e3 for c in others if c != result.before}
    result = only(network, batches=(1, 32))
    assert result.after == result.before and result.after_ms == result.before_ms


def test_one_image_decides_where_there_is_no_memory_for_many(network: FakeNetwork) -> None:
    network.largest_batch = 16
    assert only(network, batches=(1, 32)).after == min(CANDIDATES, key=valley)


def test_a_kernel_in_use_that_fails_is_an_error(network: FakeNetwork) -> None:
    network.broken = {CANDIDATES[0]}
    with pytest.raises(DeviceError, match=r"layer0.*CL_OUT_OF_RESOURCES"):
        only(network)


def test_layers_of_one_shape_are_tuned_once() -> None:
    network = FakeNetwork(
        [CANDIDATES, [], CANDIDATES, CANDIDATES[:1], CANDIDATES],
        {text: valley(text) for text in CANDIDATES},
        signatures=["same", "x", "other", "y", "same"],
    )
    assert tunable_layers(network) == [[0, 4], [2]]
    results = list(tune_layers(network, "rapid"))
    assert [result.layers for result in results] == [["layer0", "layer4"], ["layer2"]]
    assert {index for index, _ in network.measured} == {0, 2}


def test_what_suits_one_shape_suits_all_its_layers() -> None:
    network = FakeNetwork(
        [CANDIDATES, CANDIDATES[:5]],
        {text: valley(text) for text in CANDIDATES},
        signatures=["same", "same"],
    )
    assert only(network).after in CANDIDATES[:5]


def test_batch_and_progress_are_passed_on(network: FakeNetwork) -> None:
    texts: list[str] = []
    (result,) = tune_layers(network, "rapid", (4,), texts.append)
    assert result.before_ms == 4 * valley(CANDIDATES[0])
    assert len(texts) == result.measured
    assert "layer0" in texts[0]


def test_choices_are_equal_whether_or_not_defaults_are_written() -> None:
    from phonebit.bnn_kernels.sources import kernel_paths, tunables

    name = next(name for name in kernel_paths() if tunables(name))
    tunable = tunables(name)[0]
    written = KernelChoice.parse(f"{name} {tunable.name}={tunable.default}")
    assert written == KernelChoice.parse(name)
    assert written.defaults == len(tunables(name))


@pytest.mark.parametrize("text", ["", "kernel P=many", "kernel P"])
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a kernel choice"):
        KernelChoice.parse(text)


def line(shape: str, choice: str, op: str = "binary_conv2d") -> str:
    return f"{op} {shape} vendor family device {choice}"


def test_a_new_line_takes_the_place_of_the_old_one() -> None:
    known = f"# title\n{line('a', 'old P=1')}  # why\n\n{line('b', 'stays')}\n"
    merged = merged_table(known, [line("c", "more"), line("a", "first"), line("a", "new P=2")])
    assert merged.splitlines() == [
        "# title",
        line("a", "new P=2"),
        "",
        line("b", "stays"),
        line("c", "more"),
    ]
    assert merged_table(merged, [line("a", "new P=2")]) == merged


def test_doubled_lines_become_one() -> None:
    known = f"{line('a', 'x')}\n{line('a', 'y')}\n"
    assert merged_table(known, [line("a", "z")]) == line("a", "z") + "\n"


def test_the_store_keeps_devices_apart_and_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path / "cache"))
    assert stored_tuning("one | p | 1") == ""
    path = store_tuning("one | p | 1", [line("a", "x")])
    assert path == tuning_file("one | p | 1")
    store_tuning("one | p | 1", [line("b", "y"), line("a", "z")])
    assert stored_tuning("one | p | 1").splitlines() == [
        "# one | p | 1",
        line("a", "z"),
        line("b", "y"),
    ]
    assert stored_tuning("one | p | 2") == ""
    assert [file.name for file in (tmp_path / "cache" / "tuning").iterdir()] == [path.name]


def test_a_store_that_cannot_be_read_counts_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path))
    path = tuning_file("device")
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\x00")
    assert stored_tuning("device") == ""


def test_an_interrupted_write_leaves_the_old_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tuning.table"
    export_tuning(table, [line("a", "x")])

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export_tuning(table, [line("a", "y")])
    assert table.read_text() == line("a", "x") + "\n"
    assert list(tmp_path.iterdir()) == [table]


def test_an_export_into_what_is_no_text_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "binary"
    table.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a tuning table"):
        export_tuning(table, [line("a", "x")])
    assert table.read_bytes() == b"\xff\xfe"


@pytest.mark.skipif(sys.platform == "win32", reason="no permissions of POSIX")
def test_a_cache_folder_that_everybody_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.warns(PhoneBitWarning, match="everybody can write"):
        assert cache_folder() is None
    assert cache_folder() is None  # without saying it again


def test_the_cache_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PHONEBIT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / "home" / ".cache" / "phonebit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / "home" / ".cache" / "phonebit"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "phonebit"
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
