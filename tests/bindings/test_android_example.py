"""The Android example's JNI layer, compiled and run in a desktop JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from c_library import c_library

from phonebit import Network
from phonebit._runtime import prepare_image
from phonebit.converter.writer import to_bytes
from support.golden import described_classifier

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "android" / "app" / "src" / "main"
HEADERS = ROOT / "runtime" / "include"
DRIVER = Path(__file__).with_name("FrameClassifier.java")
I420 = 7
LABELS = ["class 0", "Käse", "猫", "😀 smile", *(f"class {index}" for index in range(4, 10))]
"""What Java's own encoding of UTF-8 writes otherwise among them."""

JVM_OPTIONS = ("-Xcheck:jni", "-Xint", "-XX:+UseSerialGC")
"""JNI calls are checked; and what else a JVM has to say is not said to a test this small."""


def jdk() -> Path:
    """The folder of a JDK; skips where there is none."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no javac: install a JDK, e.g. openjdk-17-jdk-headless")
    return Path(javac).resolve().parents[1]


def compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler: install g++ or name one in CXX")
    return found


def done(command: Sequence[str | Path]) -> str:
    """Output of a command, which must succeed and have nothing to complain about."""
    process = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=300
    )
    assert process.returncode == 0 and not process.stderr, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def jni(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libphonebit_jni.so and the classes."""
    library = Path(c_library()._name)
    folder = tmp_path_factory.mktemp("jni")
    include = jdk() / "include"
    flags = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden")
    warnings = ("-Wall", "-Wextra", "-Werror")
    includes = (f"-I{HEADERS}", f"-I{include}", f"-I{include / 'linux'}")
    source, target = EXAMPLE / "cpp" / "phonebit_jni.cpp", folder / "libphonebit_jni.so"
    linked = (library, f"-Wl,-rpath,{library.parent}")
    done([compiler(), *flags, *warnings, *includes, source, *linked, "-o", target])
    java = EXAMPLE / "java" / "org" / "phonebit" / "example" / "NativeNetwork.java"
    done([jdk() / "bin" / "javac", "-encoding", "UTF-8", "-d", folder, java, DRIVER])
    return folder


def classify_in_jvm(jni: Path, model: bytes, frame: bytes, numbers: Sequence[int]) -> str:
    """What FrameClassifier prints; the model lies after other bytes, as assets in an APK do."""
    offset = 12345
    (jni / "assets").write_bytes(bytes(offset) + model + b"more")
    (jni / "frame").write_bytes(frame)
    with (jni / "assets").open("rb") as assets:
        file = (assets.fileno(), offset, len(model))
        process = subprocess.run(
            [
                str(jdk() / "bin" / "java"), *JVM_OPTIONS, "-Dfile.encoding=UTF-8",
                "-Dstdout.encoding=UTF-8", f"-Djava.library.path={jni}", f"-Djava.io.tmpdir={jni}",
                "-cp", str(jni), "org.phonebit.example.FrameClassifier", *map(str, file),
                str(jni / "frame"), *map(str, numbers),
            ],
            capture_output=True, encoding="utf-8", check=False, timeout=300, pass_fds=[file[0]],
        )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WARNING in native" not in process.stdout + process.stderr
    return process.stdout


@pytest.mark.parametrize("chroma_pixel_bytes", [1, 2])
def test_a_frame_is_classified_in_java_as_in_python(
    jni: Path, tmp_path: Path, chroma_pixel_bytes: int
) -> None:
    """Odd sizes, gaps between rows, a crop, a turn; chroma in planes of its own or interleaved."""
    width, height, rotation = 101, 67, 90
    half_width, half_height = 51, 34
    luma_row, chroma_row = width + 3, half_width * chroma_pixel_bytes + 5
    crop = (7, 4, 81, 60)
    luma_bytes = (height - 1) * luma_row + width
    chroma_bytes = (half_height - 1) * chroma_row + (half_width - 1) * chroma_pixel_bytes + 1
    rng = np.random.default_rng(0)
    blue, red, luma = (
        rng.integers(0, 256, size, np.uint8) for size in (chroma_bytes, chroma_bytes, luma_bytes)
    )
    graph = described_classifier()
    graph.labels = LABELS
    model = to_bytes(graph)
    path = tmp_path / "model.pbit"
    path.write_bytes(model)

    numbers = (width, height, luma_row, chroma_row, chroma_pixel_bytes, rotation, 1, *crop)
    frame = b"".join(plane.tobytes() for plane in (blue, red, luma))
    printed = classify_in_jvm(jni, model, frame, numbers).splitlines()

    network = Network.load(path, device="cpu")
    (info,) = network.inputs
    rule = network.preprocessing[info.name].to_record(0, info.shape[2])
    frame = {
        "format": I420, "width": width, "height": height, "planes": [luma, blue, red],
        "row_bytes": (luma_row, chroma_row, chroma_row),
        "pixel_bytes": (1, chroma_pixel_bytes, chroma_pixel_bytes),
        "crop": crop, "rotation": rotation, "is_mirrored": True,
    }  # fmt: skip
    fields = {name: rule[name].tolist() for name in rule.dtype.names or ()}
    image = prepare_image(frame, fields, info.dtype, info.shape)[0]
    scores = np.asarray(network.forward(image[None]), np.float32).reshape(-1)
    expected = " ".join(f"{bits:08x}" for bits in scores.view(np.uint32))
    assert printed[:2] == [f"device: {network.device}", f"labels: {','.join(LABELS)}"]
    assert printed[2:5] == [f"scores: {expected}"] * 3
    assert printed[5] == "whole: 10"
    assert_refusals(dict(line.split(": ", 1) for line in printed[6:-1]), width, chroma_bytes)
    assert printed[-1] == "done"


def assert_refusals(refused: dict[str, str], width: int, chroma_bytes: int) -> None:
    argument, state = "IllegalArgumentException: ", "IllegalStateException: "
    lacking = f"has {chroma_bytes - 1} bytes, expected at least {chroma_bytes}"
    begins = {
        "heap": f"{argument}plane Y: expected a direct ByteBuffer",
        "null": f"{argument}plane U: expected a direct ByteBuffer",
        "short": f"{argument}plane V: {lacking}",
        "rotation": f"{argument}image: rotation is 45, expected 0, 90, 180 or 270",
        "crop": f"{argument}image: the crop has left 0, top 0, width {width + 1}, height 1",
        "crop length": f"{argument}crop: expected left, top, width, height",
        "stride": f"{argument}plane U: row stride 0, pixel stride 1; expected both above 0",
        "size": f"{argument}image: got -2x2 pixels",
        "descriptor": argument,
        "file": state,
        "device": argument,
        "text": f"{argument}a text is null",
        "closed": f"{state}the network is closed",
    }
    assert refused.keys() == begins.keys()
    for what, text in refused.items():
        assert text.startswith(begins[what]), (what, text)
