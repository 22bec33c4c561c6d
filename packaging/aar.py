"""Makes an AAR, the package that an Android app depends on, and next to it its pom.

python packaging/aar.py -o phonebit.aar

With ANDROID_NDK_HOME set, the NDK builds the libraries, by the presets of CMakePresets.json.
Without an NDK the compilers of this machine build them for Linux: clang 19 and lld for arm64-v8a,
gcc's cross compiler for armeabi-v7a, c++ for x86_64. Such an AAR has the same structure, to be
tested under emulation, and is for no phone; its version says so. --build takes what CMake has
built.

The Kotlin compiler is the one that KOTLIN_HOME names: a release of Kotlin, or the folder that
npm install kotlin-compiler makes, node_modules/kotlin-compiler. javac has to be on the PATH.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

from android_builds import (
    ANDROID,
    LINUX,
    MIN_API,
    ROOT,
    Library,
    configured,
    kotlin_classes,
    library_of,
)

GROUP, NAME = "org.phonebit", "phonebit"
DEPENDENCIES = (
    ("org.jetbrains.kotlin", "kotlin-stdlib", "2.1.0", "compile"),
    ("org.jetbrains.kotlinx", "kotlinx-coroutines-core", "1.8.0", "compile"),
)
AAR_METADATA = """\
aarFormatVersion=1.0
aarMetadataVersion=1.0
minCompileSdk=31
minAndroidGradlePluginVersion=4.1.0
"""
"""uses-native-library is known to Android's tools since API 31."""


def version() -> str:
    """PhoneBit's, as CMake has it."""
    found = re.search(r"project\(phonebit VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    if found is None:
        raise ValueError(f"{ROOT}/CMakeLists.txt: project(phonebit VERSION ...) is not there")
    return found[1]


def headers(folder: Path) -> dict[str, bytes]:
    """The public headers by their names below include/, with those that a build makes."""
    found = {}
    for place in (ROOT / "runtime" / "include", folder / "runtime" / "c_api" / "include"):
        for path in place.rglob("*.h"):
            found[path.relative_to(place).as_posix()] = path.read_bytes()
    return found


def json_text(value: object) -> bytes:
    """A JSON file with this value."""
    return (json.dumps(value, indent=2) + "\n").encode()


def prefab(libraries: dict[str, Library], include: dict[str, bytes]) -> dict[str, bytes]:
    """The files of prefab's package, schema 2.

    The headers ask for no C++ library of the app's: stl is "none", which goes with each.
    """
    module = f"prefab/modules/{NAME}"
    package = {"schema_version": 2, "name": NAME, "version": version(), "dependencies": []}
    files = {
        "prefab/prefab.json": json_text(package),
        f"{module}/module.json": json_text(
            {"export_libraries": [], "library_name": f"lib{NAME}", "android": {}}
        ),
    }
    for name, content in include.items():
        files[f"{module}/include/{name}"] = content
    for abi, library in libraries.items():
        # Of other compilers: the first NDK that aligns to pages of 16 kB by itself.
        described = {"abi": abi, "api": MIN_API, "ndk": library.ndk or 28, "stl": "none"}
        files[f"{module}/libs/android.{abi}/abi.json"] = json_text(described | {"static": False})
        files[f"{module}/libs/android.{abi}/lib{NAME}.so"] = library.content
    return files


def archive(files: dict[str, bytes]) -> bytes:
    """A zip file that depends on names and contents alone: no times, no order of the caller."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as out:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            out.writestr(entry, files[name], compresslevel=9)
    return memory.getvalue()


def contents(
    libraries: dict[str, Library], include: dict[str, bytes], classes: dict[str, bytes]
) -> dict[str, bytes]:
    """All files of the AAR by name.

    Args:
        libraries: by ABI.
        include: public headers by name, such as ``phonebit/phonebit.h``.
        classes: of the Kotlin library by name, such as ``org/phonebit/Network.class``.
    """
    licences = {name: (ANDROID / name).read_bytes() for name in ("NOTICE",)}
    licences["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    made_by = "".join(f"{abi}: {library.compiler}\n" for abi, library in sorted(libraries.items()))
    files = {
        "AndroidManifest.xml": (ANDROID / "src" / "main" / "AndroidManifest.xml").read_bytes(),
        "proguard.txt": (ANDROID / "consumer-rules.pro").read_bytes(),
        "R.txt": b"",
        "classes.jar": archive(
            classes | {f"META-INF/{NAME}/{name}": text for name, text in licences.items()}
        ),
        "META-INF/com/android/build/gradle/aar-metadata.properties": AAR_METADATA.encode(),
        f"META-INF/{NAME}/compilers.txt": made_by.encode(),
        **licences,
        **prefab(libraries, include),
    }
    for abi, library in libraries.items():
        files[f"jni/{abi}/lib{NAME}.so"] = library.content
        files[f"jni/{abi}/lib{NAME}_jni.so"] = library.jni
    return files


def pom(libraries: dict[str, Library]) -> bytes:
    """Maven's description of the AAR. A version that ends in -linux is of no use on a phone."""
    is_for_phones = all(library.ndk is not None for library in libraries.values())
    fields = {
        "modelVersion": "4.0.0",
        "groupId": GROUP,
        "artifactId": NAME,
        "version": version() + ("" if is_for_phones else "-linux"),
        "packaging": "aar",
        "name": "PhoneBit",
        "description": "Inference engine for binary neural networks",
    }
    lines = "".join(f"  <{name}>{escape(text)}</{name}>\n" for name, text in fields.items())
    licence = "<name>Apache-2.0</name><url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>"
    dependencies = "".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{oldest}</version><scope>{scope}</scope></dependency>\n"
        for group, name, oldest, scope in DEPENDENCIES
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<project xmlns="http://maven.apache.org/POM/4.0.0">\n{lines}'
        f"  <licenses><license>{licence}</license></licenses>\n"
        f"  <dependencies>\n{dependencies}  </dependencies>\n</project>\n"
    ).encode()


def given_builds(arguments: list[str]) -> dict[str, Path]:
    """Folders by ABI, of ABI=FOLDER."""
    folders = {}
    for argument in arguments:
        abi, _, folder = argument.partition("=")
        if abi not in LINUX or not Path(folder, "CMakeCache.txt").is_file():
            sys.exit(
                f"--build {argument}: expected ABI=FOLDER, an ABI of {', '.join(LINUX)} and a "
                "folder in which CMake has built PhoneBit"
            )
        folders[abi] = Path(folder).resolve()
    return folders


def main() -> None:
    """Builds what is not given, and writes the AAR and its pom."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="FILE.aar")
    parser.add_argument("--abi", action="append", choices=LINUX, help="default: all three")
    parser.add_argument("--build", action="append", default=[], metavar="ABI=FOLDER")
    arguments = parser.parse_args()
    if arguments.output.suffix != ".aar":
        parser.error(f"-o {arguments.output}: expected a name that ends in .aar")
    ndk = os.environ.get("ANDROID_NDK_HOME")
    folders = given_builds(arguments.build)
    folders = {
        abi: folders.get(abi) or configured(abi, ndk) for abi in arguments.abi or sorted(LINUX)
    }
    libraries = {abi: library_of(folder, abi) for abi, folder in folders.items()}
    files = contents(libraries, headers(next(iter(folders.values()))), kotlin_classes())
    arguments.output.write_bytes(archive(files))
    arguments.output.with_suffix(".pom").write_bytes(pom(libraries))
    for abi, library in libraries.items():
        use = "" if library.ndk else "; for tests, no phone loads it: set ANDROID_NDK_HOME"
        print(f"{abi}: {len(library.content) / 1000:.1f} kB by {library.compiler}{use}")
    digest = hashlib.sha256(arguments.output.read_bytes()).hexdigest()
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1000:.1f} kB, SHA-256 {digest}")


if __name__ == "__main__":
    main()
