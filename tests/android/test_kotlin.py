"""The Kotlin library, compiled by the real compiler against stubs of Android, in a desktop JVM.

KOTLIN_HOME is the folder of npm's package kotlin-compiler, PHONEBIT_LIBRARY a native build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit import Network
from phonebit._runtime import prepare_image
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.writer import to_bytes
from phonebit.detection import detect
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing
from support.aar import builds
from support.detector_graph import cell_detector
from support.engine_net import Net
from support.golden import described_classifier

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("PHONEBIT_LIBRARY")
DESKTOP = Path(__file__).parent / "kotlin" / "Desktop.kt"
OFFSET = 12345
LABELS = ["class 0", "Käse", "猫", "😀 smile", *(f"class {index}" for index in range(4, 10))]
"""What Java's own encoding of UTF-8 writes otherwise among them."""
RGBA, I420 = 2, 7
Levels = NDArray[np.uint8]
Values = NDArray[np.float32]


def done(command: Sequence[str | Path]) -> str:
    """Output of a command, which must succeed."""
    process = subprocess.run(
        [str(part) for part in command], capture_output=True, encoding="utf-8", timeout=600
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WARNING in native" not in process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library's classes, those of the driver and libphonebit_jni.so."""
    kotlin = os.environ.get("KOTLIN_HOME")
    if kotlin is None or LIBRARY is None:
        pytest.skip("KOTLIN_HOME and PHONEBIT_LIBRARY name no compiler and library")
    folder = tmp_path_factory.mktemp("kotlin")
    builds.compile_classes(Path(kotlin), folder, folder, DESKTOP)
    compiler = os.environ.get("CXX", "c++")
    include = Path(str(shutil.which("javac"))).resolve().parents[1] / "include"
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]
    headers = [ROOT / "runtime" / "include", include, include / "linux"]
    source = builds.ANDROID / "src" / "main" / "cpp" / "phonebit_jni.cpp"
    flags += ["-Werror", *(f"-I{path}" for path in headers), str(source)]
    linked = [LIBRARY, f"-Wl,-rpath,{Path(LIBRARY).parent}", "-o", f"{folder}/libphonebit_jni.so"]
    done([compiler, *flags, *linked])
    return folder


def restorer() -> bytes:
    """A network whose output is the negative of its image, both in -1..1."""
    net = Net("negative")
    x = net.input("image", (5, 6, 3), DataType.U8)
    slope, one = np.full(3, -2 / 255, np.float32), np.ones(3, np.float32)
    graph = net.done(net.op("negative", Elementwise(Epilogue([ScaleBias(slope, one)])), x))
    graph.preprocessing = {"image": Preprocessing((-1.0, 1.0))}
    return to_bytes(graph)


def bits(values: Values) -> str:
    flat = np.ascontiguousarray(values, np.float32).reshape(-1)
    return " ".join(f"{word:08x}" for word in flat.view(np.uint32))


def scores(path: Path, frame: dict[str, object]) -> Values:
    """Of an image as the C interface describes it."""
    network = Network.load(path, device="cpu")
    (info,) = network.inputs
    rule = network.preprocessing[info.name].to_record(0, info.shape[2])
    fields = {name: rule[name].tolist() for name in rule.dtype.names or ()}
    image = prepare_image(frame, fields, info.dtype, info.shape)[0]
    (output,) = np.asarray(network.forward(image[None]), np.float32)
    return np.asarray(output, np.float32)


class Assets:
    """The files that the driver reads, and what Python says of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.random = np.random.default_rng(0)
        graph = described_classifier()
        graph.labels = LABELS
        classifier = to_bytes(graph)
        newer = bytearray(classifier)
        newer[4:6] = (99).to_bytes(2, "little")
        for name, content in {
            "classifier": classifier, "detector": to_bytes(cell_detector()), "restorer": restorer(),
            "compressed": b"", "text": b"not a model\n" * 9, "newer": bytes(newer),
            "cut": classifier[: len(classifier) // 2],
        }.items():  # fmt: skip
            (folder / f"{name}.pbit.apk").write_bytes(bytes(OFFSET) + content)
            (folder / f"{name}.pbit").write_bytes(content)

    def levels(self, name: str, *shape: int) -> Levels:
        """Writes random levels to a file."""
        made = self.random.integers(0, 256, shape, np.uint8)
        (self.folder / name).write_bytes(made.tobytes())
        return made

    def frame(self) -> dict[str, object]:
        """A camera's frame: chroma interleaved, gaps between rows, a crop, turned, mirrored."""
        y, u, v = self.levels("y", 66 * 104 + 101), *(self.levels(n, 33 * 107 + 101) for n in "uv")
        return {
            "format": I420, "width": 101, "height": 67, "planes": [y, u, v],
            "row_bytes": (104, 107, 107), "pixel_bytes": (1, 2, 2), "crop": (7, 4, 81, 60),
            "rotation": 90, "is_mirrored": True,
        }  # fmt: skip

    def bitmap(self, name: str, levels: Levels) -> dict[str, object]:
        """Red, green, blue and alpha."""
        (self.folder / name).write_bytes(levels.tobytes())
        height, width, _ = levels.shape
        return {"format": RGBA, "width": width, "height": height, "planes": [levels.reshape(-1)]}


def scene() -> Levels:
    """A red and a blue thing on black, wider than high."""
    made = np.zeros((60, 90, 4), np.uint8)
    made[..., 3] = 255
    made[:44, :44, 0] = 255
    made[20:, 50:, 2] = 250
    return made


def test_kotlin_gives_what_python_gives(classes: Path, tmp_path: Path) -> None:
    assets = Assets(tmp_path)
    classifier, detector = tmp_path / "classifier.pbit", tmp_path / "detector.pbit"
    of_frame = scores(classifier, assets.frame())
    random = assets.random.integers(0, 256, (21, 33, 4), np.uint8)
    of_bitmap = scores(classifier, assets.bitmap("rgba", random))
    boxes = scores(detector, assets.bitmap("scene", scene()))
    small = assets.random.integers(0, 256, (5, 6, 4), np.uint8)
    assets.bitmap("small", small)

    printed = run_in_jvm(classes, tmp_path)
    network = Network.load(classifier, device="cpu")
    assert printed["device"] == [network.device]
    assert printed["labels"] == [",".join(LABELS)]
    height, width, channels = network.inputs[0].shape
    assert printed["shapes"] == [f"[{height}, {width}, {channels}] [1, 1, 10]"]
    assert printed["closed"] == ["true"]
    assert printed["frame"] == printed["later"] == printed["listener"] == [bits(of_frame)]
    assert printed["bitmap"] == [bits(of_bitmap)]
    order = np.argsort(-of_frame.reshape(-1), kind="stable")[:3]
    assert printed["best"] == [",".join(LABELS[index] for index in order)]
    assert printed["profile"] == [str(len(network.layers))]
    found = Network.load(detector, device="cpu")
    rule = found.preprocessing[found.inputs[0].name]
    placement = rule.fit(np.ascontiguousarray(scene()[..., :3]), found.inputs[0]).placement
    (head,) = found.detection.values()
    expected = [
        f"{each.label} {each.score:.3f} " + " ".join(f"{side:.3f}" for side in each.box)
        for each in detect(boxes, head, placement, found.labels)
    ]
    assert len(expected) >= 2
    assert printed["found"] == expected
    negative = np.concatenate([255 - small[..., :3], np.full((5, 6, 1), 255, np.uint8)], axis=-1)
    assert printed["restored"] == [" ".join(f"{level:02x}" for level in negative.reshape(-1))]
    assert_refusals(printed, tmp_path)
    assert printed["cancelled"] == ["10"]
    assert int(printed["grown"][0]) < 8000, "kB of 150 networks that were loaded and closed"
    assert int(printed["threads"][0]) <= 1


def run_in_jvm(classes: Path, folder: Path) -> dict[str, list[str]]:
    """Lines of the driver by what they begin with."""
    kotlin = Path(os.environ["KOTLIN_HOME"]) / "lib"
    libraries = [classes, kotlin / "kotlin-stdlib.jar", kotlin / "kotlinx-coroutines-core-jvm.jar"]
    options = [
        "-Xcheck:jni", "-XX:+UseSerialGC", "-Dstdout.encoding=UTF-8", "--add-opens",
        "java.base/java.io=ALL-UNNAMED", f"-Djava.library.path={classes}",
    ]  # fmt: skip
    path = ":".join(map(str, libraries))
    output = done(["java", *options, "-cp", path, "org.phonebit.desktop.DesktopKt", folder])
    lines: dict[str, list[str]] = {}
    for line in output.splitlines():
        what, _, text = line.partition(": ")
        lines.setdefault(what, []).append(text)
    assert "done" in lines, output
    return lines


def assert_refusals(printed: dict[str, list[str]], folder: Path) -> None:
    argument, state = "IllegalArgumentException: ", "IllegalStateException: "
    begins = {
        "heap": f"{argument}plane Y: expected a direct ByteBuffer",
        "short": f"{argument}plane V: has 100 bytes, expected at least {33 * 107 + 101}",
        "stride": f"{argument}plane U: row stride 0, pixel stride 2; expected both above 0",
        "narrow": f"{argument}image: ",
        "rotation": f"{argument}image: rotation is 45, expected 0, 90, 180 or 270",
        "size": f"{argument}image: got -2x67 pixels",
        "planes": f"{argument}got 2 planes, expected Y, U and V",
        "configuration": f"{argument}bitmap has configuration RGB_565, expected ARGB_8888",
        "boxes": f"{argument}the file says nothing of boxes",
        "restoration": f"{argument}the output has 10 channels, expected red, green and blue",
        "absent.pbit": f"{argument}asset 'absent.pbit' does not exist; put the file into src/main",
        "compressed.pbit": f"{argument}asset 'compressed.pbit' is compressed in the APK; add",
        "text.pbit": state,
        "newer.pbit": state,
        "cut.pbit": state,
        "no file": f"{argument}{folder}/absent: cannot be opened; check the path",
        "unknown device": argument,
        "waits": "null",
        "run when closed": f"{state}the network is closed",
        "later when closed": f"{state}the network is closed",
        "profile when closed": f"{state}the network is closed",
    }
    for what, begin in begins.items():
        (text,) = printed[what]
        assert text.startswith(begin), (what, text)
    assert "99" in printed["newer.pbit"][0]
