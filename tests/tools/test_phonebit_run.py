"""phonebit_run: raw tensors and images in, the engine's bits out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_program import GOLDEN, Program
from numpy.typing import NDArray
from PIL import Image

from phonebit import Network
from phonebit.cli.classify import classify
from phonebit.converter.writer import to_bytes
from phonebit.format.bits import pack_signs
from phonebit.images.image_files import load_image
from phonebit.images.preprocessing import Preprocessing, Resize
from support.golden import tiny_classifier

FILES = sorted(GOLDEN.glob("*.pbit"))
REAL_FILES = ("float_layers", "log_softmax")
"""Their expectations are NumPy's exponentials, close to the engine's: here the engine is asked."""
CLASSIFIER = GOLDEN / "tiny_classifier.pbit"


def golden_files(file: Path, folder: Path) -> tuple[list[str], dict[str, Path]]:
    """--input options, and the expected raw outputs by name."""
    arrays: dict[str, NDArray[Any]] = dict(np.load(file.with_suffix(".npz")))
    if file.stem in REAL_FILES:
        inputs = {key[3:]: array for key, array in arrays.items() if key.startswith("in:")}
        answers = Network.load(file, device="cpu").forward(inputs)
        arrays |= {f"out:{name}": array for name, array in answers.items()}
    options, expected = [], {}
    for number, (key, array) in enumerate(arrays.items()):
        side, name = key.split(":", 1)
        path = folder / f"{number}.bin"
        as_stored = pack_signs(array) if array.dtype == np.int8 else array
        as_stored.tofile(path)
        if side == "in":
            options += ["--input", f"{name}={path}"]
        else:
            expected[name] = path
    return options, expected


def check_golden(run: Program, device: str, file: Path, folder: Path) -> None:
    options, expected = golden_files(file, folder)
    checks = [word for name, path in expected.items() for word in ("--check", f"{name}={path}")]
    written = {name: folder / f"out{number}.bin" for number, name in enumerate(expected)}
    outputs = [word for name, path in written.items() for word in ("--output", f"{name}={path}")]
    done = run(file, "--device", device, *options, *checks, *outputs, "--json")
    assert done.code == 0, done
    found = done.document["checks"]
    assert [check["output"] for check in found] == list(expected)
    assert all(check["equal"] and check["difference"] == "" for check in found)
    for name, path in expected.items():
        assert written[name].read_bytes() == path.read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_golden_files_on_the_cpu(run: Program, file: Path, tmp_path: Path) -> None:
    check_golden(run, "cpu", file, tmp_path)


@pytest.mark.parametrize("device", ["gpu", "gpu+cpu"])
@pytest.mark.parametrize("name", ["tiny_classifier", "planned_classifier", "residual_block_31"])
@pytest.mark.usefixtures("opencl")
def test_golden_files_on_other_devices(
    run: Program, device: str, name: str, tmp_path: Path
) -> None:
    check_golden(run, device, GOLDEN / f"{name}.pbit", tmp_path)


@pytest.mark.parametrize(("byte", "place"), [(0, "image 0"), (45, "image 1")])
def test_the_first_difference_is_named(run: Program, tmp_path: Path, byte: int, place: str) -> None:
    options, expected = golden_files(CLASSIFIER, tmp_path)
    changed = bytearray(expected["logits"].read_bytes())
    changed[byte] ^= 1
    expected["logits"].write_bytes(changed)
    done = run(CLASSIFIER, "--device", "cpu", *options, "--check", expected["logits"])
    assert done.code == 1
    channel = byte % 40 // 4
    assert f"logits: {place}, row 0, column 0, channel {channel}: got " in done.out
    assert "0x" in done.out


def test_the_bits_of_a_word_are_named(run: Program, tmp_path: Path) -> None:
    file = GOLDEN / "binary_conv_threshold_31_32_pad1.pbit"
    name = next(o.name for o in Network.load(file, device="cpu").outputs if o.dtype == "bit")
    options, expected = golden_files(file, tmp_path)
    changed = bytearray(expected[name].read_bytes())
    changed[0] ^= 1
    expected[name].write_bytes(changed)
    done = run(file, "--device", "cpu", *options, "--check", f"{name}={expected[name]}")
    assert done.code == 1
    assert "row 0, column 0, channels 0 to " in done.out


def test_an_expected_file_of_another_length_differs(run: Program, tmp_path: Path) -> None:
    options, expected = golden_files(CLASSIFIER, tmp_path)
    expected["logits"].write_bytes(b"1234")
    done = run(CLASSIFIER, "--device", "cpu", *options, "--check", expected["logits"])
    assert (done.code, "logits: 80 bytes, expected 4" in done.out) == (1, True)


def test_an_image_gives_the_classes_of_phonebit_run(run: Program, tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)
    image = tmp_path / "image.ppm"
    Image.fromarray(levels).save(image)
    network = Network.load(CLASSIFIER, device="cpu")
    expected = classify(network, load_image(image, network.inputs[0], None), top=3)
    done = run(CLASSIFIER, "--device", "cpu", "--picture", image, "--top", 3, "--json")
    assert done.code == 0, done
    found = done.document["results"][0]["top"]
    assert [guess["index"] for guess in found] == [guess.index for guess in expected.guesses]
    assert [guess["label"] for guess in found] == [guess.label for guess in expected.guesses]
    assert [guess["score"] for guess in found] == [guess.score for guess in expected.guesses]
    for mine, theirs in zip(found, expected.guesses, strict=True):
        assert mine["probability"] == pytest.approx(theirs.probability, rel=1e-12)


def test_gray_images_have_comments_and_any_blanks(run: Program, tmp_path: Path) -> None:
    levels = np.load(CLASSIFIER.with_suffix(".npz"))["in:image"][0]
    image, raw = tmp_path / "image.pgm", tmp_path / "raw.bin"
    image.write_bytes(b"P5 # gray\n# 28 by 28\n 28\n\t28\n255\n" + levels.tobytes())
    raw.write_bytes(levels.tobytes())
    scores = [tmp_path / "a.bin", tmp_path / "b.bin"]
    common = [CLASSIFIER, "--device", "cpu"]
    assert run(*common, "--picture", image, "--output", scores[0]).code == 0
    assert run(*common, "--input", raw, "--output", scores[1]).code == 0
    assert scores[0].read_bytes() == scores[1].read_bytes()


def test_a_gray_frame_is_a_gray_image(run: Program, tmp_path: Path) -> None:
    luma = np.load(CLASSIFIER.with_suffix(".npz"))["in:image"][0].tobytes()
    frame, image = tmp_path / "frame.nv21", tmp_path / "image.pgm"
    frame.write_bytes(luma + bytes([128]) * (2 * 14 * 14))
    image.write_bytes(b"P5 28 28 255\n" + luma)
    common = [CLASSIFIER, "--device", "cpu", "--json"]
    of_frame = run(*common, "--picture", frame, "--size", "28x28")
    assert of_frame.code == 0, of_frame
    of_image = run(*common, "--picture", image)
    assert of_frame.document["results"] == of_image.document["results"]


def test_the_file_s_own_rule_prepares_images(
    run: Program, tmp_path: Path, ruled_classifier: tuple[Path, Preprocessing]
) -> None:
    file, rule = ruled_classifier
    levels = np.random.default_rng(1).integers(0, 256, (50, 60), np.uint8)
    image, scores = tmp_path / "image.pgm", tmp_path / "scores.bin"
    Image.fromarray(levels).save(image)
    assert run(file, "--device", "cpu", "--picture", image, "--output", scores).code == 0
    network = Network.load(file, device="cpu")
    array = load_image(image, network.inputs[0], rule).array
    assert scores.read_bytes() == network.forward(array[None]).tobytes()


@pytest.fixture
def ruled_classifier(tmp_path: Path) -> tuple[Path, Preprocessing]:
    """A classifier whose file says how images are prepared."""
    rule = Preprocessing((0.0, 1.0), resize=Resize.LETTERBOX, fill_level=9)
    graph = tiny_classifier()
    graph.preprocessing["image"] = rule
    path = tmp_path / "ruled.pbit"
    path.write_bytes(to_bytes(graph))
    return path, rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no.pbit"], "no.pbit: cannot open"),
        ([], "expected one FILE (.pbit), got 0"),
        ([CLASSIFIER, CLASSIFIER], "expected one FILE (.pbit), got 2"),
        ([CLASSIFIER], "input 'image u8 28x28x1' is missing: give --input image=FILE"),
        ([CLASSIFIER, "--input", "no.bin"], "no.bin: No such file or directory"),
        ([CLASSIFIER, "--input", "picture=x.bin"], "expected NAME=FILE with NAME one of: image"),
        ([CLASSIFIER, "--input", CLASSIFIER], "expected a multiple of 784"),
        ([CLASSIFIER, "--picture", CLASSIFIER], "not a binary PPM or PGM image"),
        ([CLASSIFIER, "--picture", "f.nv21"], "f.nv21: --size WxH is missing"),
        ([CLASSIFIER, "--picture", "f.nv21", "--size", "28"], "--size: got '28', expected width"),
        ([CLASSIFIER, "--picture", "f.nv21", "--size", "0x8"], "--size (width): got '0'"),
        ([CLASSIFIER, "--picture", "p.ppm", "--size", "8x8"], "--size is for .nv21 frames"),
        ([CLASSIFIER, "--size", "8x8"], "--size has no effect with no --picture"),
        ([CLASSIFIER, "--top", "0"], "--top: got '0'"),
        ([CLASSIFIER, "--device", "npu"], "npu"),
        ([CLASSIFIER, "--output"], "--output needs a value: --output [NAME=]FILE"),
        ([CLASSIFIER, "--json=yes"], "--json takes no value, got 'yes'"),
        ([CLASSIFIER, "--device", "cpu", "--device=cpu"], "--device is given twice"),
        ([CLASSIFIER, "--outputs", "x"], "--outputs: there is no such option"),
    ],
)
def test_bad_usage_is_one_line(run: Program, options: list[Any], message: str) -> None:
    assert message in run.refused(*options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"P6 4 4 255\n" + bytes(47), "it is cut off"),
        (b"P6 4 4 65535\n" + bytes(96), "largest level 65535, expected 255"),
        (b"P6 0 4 255\n", "width: got '0'"),
        (b"P6 4", "height: got ''"),
        (b"P3 4 4 255\n", "not a binary PPM"),
        (b"", "not a binary PPM"),
    ],
)
def test_damaged_images_are_refused(
    run: Program, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "p.ppm").write_bytes(content)
    image = tmp_path / "p.ppm"
    assert message in run.refused(CLASSIFIER, "--device", "cpu", "--picture", image)


def test_a_frame_of_another_length_is_refused(run: Program, tmp_path: Path) -> None:
    (tmp_path / "f.nv21").write_bytes(bytes(100))
    options = ["--device", "cpu", "--picture", tmp_path / "f.nv21", "--size", "9x9"]
    assert "100 bytes, expected 131 for an NV21 frame of 9x9" in run.refused(CLASSIFIER, *options)


def test_help_names_every_option(run: Program) -> None:
    done = run("--help")
    assert done.code == 0
    for option in ("--input", "--picture", "--check", "--device", "--cores"):
        assert option in done.out


def test_names_that_would_steer_the_terminal_are_escaped(run: Program, tmp_path: Path) -> None:
    names = ["\x1b]0;owned\x07\x1b[2J", "\x9b31m\x7f", "\u202etac", "h\u00e9 \u6f22 \U0001f408"]
    graph = tiny_classifier()
    graph.labels = names + [f"class {index}" for index in range(len(names), 10)]
    path = tmp_path / "named.pbit"
    path.write_bytes(to_bytes(graph))
    image = tmp_path / "0.pgm"
    image.write_bytes(b"P5 28 28 255\n" + bytes(28 * 28))
    shown = run(path, "--picture", image, "--device", "cpu", "--top", "10")
    assert shown.code == 0, shown.err
    for name in names[:3]:
        assert name not in shown.out
    for escape in (r"\x1b]0;owned\x07\x1b[2J", r"\x9b31m\x7f", r"\u202etac", names[3]):
        assert escape in shown.out
    document = run(path, "--picture", image, "--device", "cpu", "--top", "10", "--json")
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(document.out)
    guesses = document.document["results"][0]["top"]
    assert set(names) <= {guess["label"] for guess in guesses}
    refused = run(tmp_path / "\x1b[2J.pbit")
    assert refused.code == 2 and r"\x1b[2J.pbit" in refused.err and "\x1b" not in refused.err
