"""The AAR: its files against the formats of Android's tools and of prefab; programs that use it.

The programs need PHONEBIT_AAR, a file that packaging/aar.py has made.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from phonebit import Network
from support.aar import aar, builds

ROOT = Path(__file__).resolve().parents[2]
MODULE = "prefab/modules/phonebit"
CLASSIFIER = ROOT / "tests" / "golden" / "v1" / "tiny_classifier.pbit"
ABIS = ("arm64-v8a", "armeabi-v7a", "x86_64")
EMULATORS = {
    "arm64-v8a": ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"),
    "armeabi-v7a": ("qemu-arm-static", "-L", "/usr/arm-linux-gnueabihf"),
    "x86_64": (),
}
CHECK_PAGES = ROOT / "tests" / "android" / "check_pages.py"
XML_NAME = "{http://schemas.android.com/apk/res/android}"

MADE_UP = {
    abi: builds.Library(f"library of {abi}".encode(), b"JNI", "Clang 18 for Android", 27)
    for abi in ABIS
}
CLASSES = {f"org/phonebit/{name}.class": b"class" for name in ("Network", "NativeNetwork")}
HEADERS = {"phonebit/phonebit.h": b"#pragma once\n"}


def opened(files: Mapping[str, bytes]) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(aar.archive(dict(files))))


def assert_prefab(files: zipfile.ZipFile) -> None:
    """Exactly the keys that schema 2 of prefab has, and their types: it refuses others."""
    package = json.loads(files.read("prefab/prefab.json"))
    assert package == {
        "schema_version": 2, "name": "phonebit", "version": package["version"], "dependencies": []
    }  # fmt: skip
    assert re.fullmatch(r"\d+(\.\d+){0,3}", package["version"])  # CMake's
    module = json.loads(files.read(f"{MODULE}/module.json"))
    assert module.keys() <= {"export_libraries", "library_name", "android"}
    assert module["export_libraries"] == [] and module["library_name"] == "libphonebit"
    for abi in ABIS:
        described = json.loads(files.read(f"{MODULE}/libs/android.{abi}/abi.json"))
        assert {key: type(value) for key, value in described.items()} == {
            "abi": str, "api": int, "ndk": int, "stl": str, "static": bool
        }  # fmt: skip
        assert (described["abi"], described["api"], described["stl"]) == (abi, 24, "none")
        assert not described["static"]
    in_abi = r"libs/android\.[\w-]+/(abi\.json|libphonebit\.so)"
    allowed = rf"prefab/prefab\.json|{MODULE}/(module\.json|include/phonebit/\w+\.h|{in_abi})"
    names = [name for name in files.namelist() if name.startswith("prefab/")]
    assert [name for name in names if not re.fullmatch(allowed, name)] == []


def assert_structure(files: zipfile.ZipFile) -> None:
    """What Android's Gradle plugin asks of an AAR, and what a user of one may expect inside."""
    assert files.testzip() is None
    manifest = ElementTree.fromstring(files.read("AndroidManifest.xml"))
    assert manifest.attrib["package"] == "org.phonebit"
    libraries = {
        node.attrib[f"{XML_NAME}name"]: node for node in manifest.iter("uses-native-library")
    }
    assert libraries.keys() == {"libOpenCL.so", "libOpenCL-pixel.so"}
    assert {node.attrib[f"{XML_NAME}required"] for node in libraries.values()} == {"false"}
    assert files.read("LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert b"LLVM exceptions" in files.read("NOTICE")
    assert b"-keep class org.phonebit." in files.read("proguard.txt")
    assert files.read("R.txt") == b""
    with zipfile.ZipFile(io.BytesIO(files.read("classes.jar"))) as classes:
        assert classes.read("META-INF/phonebit/LICENSE") == files.read("LICENSE")
        assert {"org/phonebit/Network.class", "org/phonebit/NativeNetwork.class"} <= set(
            classes.namelist()
        )
        assert not [name for name in classes.namelist() if name.startswith("android")]
    metadata = files.read("META-INF/com/android/build/gradle/aar-metadata.properties").decode()
    assert "aarFormatVersion=1.0\n" in metadata and "minCompileSdk=31\n" in metadata
    for abi in ABIS:
        assert files.read(f"jni/{abi}/libphonebit.so") == files.read(
            f"{MODULE}/libs/android.{abi}/libphonebit.so"
        )
        assert f"jni/{abi}/libphonebit_jni.so" in files.namelist()


def test_the_files_are_those_that_gradle_and_prefab_ask_for() -> None:
    with opened(aar.contents(MADE_UP, HEADERS, CLASSES)) as files:
        assert_structure(files)
        assert_prefab(files)


def test_the_same_files_make_the_same_bytes() -> None:
    files = aar.contents(MADE_UP, HEADERS, CLASSES)
    again = aar.contents(dict(reversed(MADE_UP.items())), HEADERS, CLASSES)
    assert aar.archive(files) == aar.archive(dict(reversed(again.items())))


@pytest.mark.parametrize("ndk", [27, None])
def test_the_pom_names_what_no_phone_loads(ndk: int | None) -> None:
    libraries = MADE_UP | {"x86_64": builds.Library(b"", b"", "GNU 12 for Linux", ndk)}
    project = ElementTree.fromstring(aar.pom(libraries))
    fields = {node.tag.rpartition("}")[2]: node.text for node in project}
    assert (fields["groupId"], fields["artifactId"]) == ("org.phonebit", "phonebit")
    assert fields["packaging"] == "aar"
    assert fields["version"] == aar.version() + ("-linux" if ndk is None else "")


def test_a_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"--build mips=\.: expected ABI=FOLDER, an ABI of arm64"):
        aar.given_builds(["mips=."])
    with pytest.raises(SystemExit, match="a folder in which CMake has built PhoneBit"):
        aar.given_builds([f"x86_64={tmp_path}"])
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_STRIP:FILEPATH=/usr/bin/strip\n")
    assert aar.given_builds([f"x86_64={tmp_path}"]) == {"x86_64": tmp_path}
    assert builds.cached(tmp_path, "CMAKE_STRIP") == "/usr/bin/strip"
    with pytest.raises(SystemExit, match="build the target phonebit with -DBUILD_SHARED_LIBS=ON"):
        builds.library_of(tmp_path, "x86_64")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of PHONEBIT_AAR."""
    path = os.environ.get("PHONEBIT_AAR")
    if path is None:
        pytest.skip("PHONEBIT_AAR names no AAR")
    folder = tmp_path_factory.mktemp("aar")
    with zipfile.ZipFile(path) as files:
        files.extractall(folder)
    return folder


def test_a_built_aar_has_the_structure_and_names_no_folder_of_its_machine(unpacked: Path) -> None:
    with zipfile.ZipFile(os.environ["PHONEBIT_AAR"]) as files:
        assert_structure(files)
        assert_prefab(files)
        assert [name for name in files.namelist() if str(ROOT).encode() in files.read(name)] == []


def offer_to_cmake(unpacked: Path, abi: str) -> Path:
    """Writes for CMake what prefab does: from the JSON files and the layout alone."""
    package = json.loads((unpacked / "prefab" / "prefab.json").read_text())
    module = unpacked / MODULE
    described = json.loads((module / "module.json").read_text())
    library = module / "libs" / f"android.{abi}" / f"{described['library_name']}.so"
    folder = unpacked / f"cmake-{abi}"
    folder.mkdir()
    (folder / f"{package['name']}Config.cmake").write_text(
        f"add_library({package['name']}::{module.name} SHARED IMPORTED)\n"
        f"set_target_properties({package['name']}::{module.name} PROPERTIES\n"
        f'  IMPORTED_LOCATION "{library}" INTERFACE_INCLUDE_DIRECTORIES "{module / "include"}"\n'
        f'  INTERFACE_LINK_LIBRARIES "{";".join(described["export_libraries"])}")\n'
    )
    (folder / f"{package['name']}ConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{package["version"]}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
    )
    return folder


@pytest.mark.parametrize("abi", ABIS)
def test_an_app_that_uses_prefab_computes_the_bits_of_this_machine(
    unpacked: Path, tmp_path: Path, abi: str
) -> None:
    if not (unpacked / MODULE / "libs" / f"android.{abi}").is_dir():
        pytest.skip(f"PHONEBIT_AAR has no library for {abi}")
    offered = offer_to_cmake(unpacked, abi)
    consumer = Path(__file__).parent / "consumer"
    configure = ["cmake", "-S", str(consumer), "-B", str(tmp_path), "-G", "Ninja"]
    configure += [f"-Dphonebit_DIR={offered}", "-DCMAKE_BUILD_TYPE=Release", *builds.LINUX[abi]]
    subprocess.run(configure, check=True, timeout=300)
    subprocess.run(["cmake", "--build", tmp_path], check=True, timeout=300)
    libraries = (unpacked / "jni" / abi).iterdir()
    subprocess.run([sys.executable, str(CHECK_PAGES), *map(str, libraries)], check=True)
    command = [*EMULATORS[abi], str(tmp_path / "consumer"), str(CLASSIFIER)]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300
    ).stdout

    network = Network.load(CLASSIFIER, device="cpu")
    (info,) = network.inputs
    image = (7 * np.arange(np.prod(info.shape))).astype(np.uint8).reshape(1, *info.shape)
    scores = np.asarray(network.forward(image), np.float32).reshape(-1)
    bits, _, device = printed.rpartition(" ")
    assert bits.split() == [f"{value:08x}" for value in scores.view(np.uint32)]
    assert device.startswith("cpu:")
