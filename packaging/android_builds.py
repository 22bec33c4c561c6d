"""What of an AAR is compiled: libphonebit.so, the library for Java, and the classes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANDROID = ROOT / "android"
MIN_API = 24
"""Of CMakePresets.json and the manifest."""
SHARED = ("-DBUILD_SHARED_LIBS=ON", "-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON")
LINUX = {
    "arm64-v8a": (f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/clang-lld-aarch64.cmake", *SHARED),
    # Optimised when it is linked it would be a fifth smaller, which matters on a phone only.
    "armeabi-v7a": (
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/arm-linux-gnueabihf.cmake",
        "-DPHONEBIT_HAVE_LTO=OFF",
        *SHARED,
    ),
    "x86_64": SHARED,
}
"""ABIs, and how CMake builds for one without an NDK."""
PARTS_OFF = tuple(f"-DPHONEBIT_{part}=OFF" for part in ("TESTS", "BENCHMARKS", "TOOLS"))


@dataclass(frozen=True)
class Library:
    """The libraries of one ABI.

    Attributes:
        content: libphonebit.so, stripped.
        jni: libphonebit_jni.so, likewise.
        compiler: name, version and system, such as ``Clang 18.0.3 for Android``.
        ndk: the NDK's major version; None if another compiler made it.
    """

    content: bytes
    jni: bytes
    compiler: str
    ndk: int | None


def configured(abi: str, ndk: str | None) -> Path:
    """Builds libphonebit.so for an ABI and returns CMake's folder."""
    cmake = ["cmake", "-S", str(ROOT)]
    if ndk is not None:
        folder = ROOT / "build" / f"android-{abi}"
        command = [*cmake, "--preset", f"android-{abi}", "-DBUILD_SHARED_LIBS=ON", *PARTS_OFF]
    else:
        folder = ROOT / "build" / "aar" / abi
        release = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
        command = [*cmake, "-B", str(folder), *release, *LINUX[abi], *PARTS_OFF]
    subprocess.run(command, check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "phonebit"], check=True)
    return folder


def cached(folder: Path, name: str) -> str:
    """A variable of CMake's cache in a folder, "" if it has none."""
    found = re.search(rf"^{name}:\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else ""


def stripped(path: Path, folder: Path) -> bytes:
    """A library without symbols that only debuggers read, by the tool that CMake has found."""
    if not path.is_file():
        sys.exit(f"{path} does not exist: build the target phonebit with {SHARED[0]}")
    copy = folder / "stripped.so"
    strip = cached(folder, "CMAKE_STRIP") or "strip"
    subprocess.run([strip, "--strip-unneeded", path, "-o", copy], check=True)
    return copy.read_bytes()


def jdk() -> Path:
    """The folder of the JDK whose javac is on the PATH."""
    javac = shutil.which("javac")
    if javac is None:
        sys.exit("no javac on the PATH: install a JDK, e.g. openjdk-17-jdk-headless")
    return Path(javac).resolve().parents[1]


def build_jni(folder: Path, abi: str, is_android: bool) -> bytes:
    """Links libphonebit_jni.so to the library that CMake has built in a folder."""
    subprocess.run(["cmake", "--install", folder, "--prefix", folder / "package"], check=True)
    toolchain = (
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/android.cmake",
        f"-DANDROID_ABI={abi}",
        f"-DANDROID_PLATFORM={MIN_API}",
        "-DANDROID_STL=c++_static",
    )
    include = jdk() / "include"
    linux = (*LINUX[abi], f"-DJNI_HEADERS={include};{include / 'linux'}")
    jni = folder / "jni"
    source = ANDROID / "src" / "main" / "cpp"
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPHONEBIT_PACKAGE={folder}/package"]
    options += toolchain if is_android else linux
    subprocess.run(["cmake", "-S", source, "-B", jni, *options], check=True)
    subprocess.run(["cmake", "--build", jni], check=True)
    return stripped(jni / "libphonebit_jni.so", jni)


def library_of(folder: Path, abi: str) -> Library:
    """What CMake has built in a folder, stripped, and the library for Java that is linked to it."""
    content = stripped(folder / "runtime" / "c_api" / "libphonebit.so", folder)
    described = "".join(file.read_text() for file in folder.glob("CMakeFiles/*/CMake*.cmake"))
    said = dict(re.findall(r'set\(CMAKE_(\w+) "([^"]*)"\)', described))
    compiler = f"{said['CXX_COMPILER_ID']} {said['CXX_COMPILER_VERSION']}"
    is_android = said["SYSTEM_NAME"] == "Android"
    jni = build_jni(folder, abi, is_android)
    ndk = None
    if is_android:
        properties = Path(cached(folder, "CMAKE_ANDROID_NDK") or os.environ["ANDROID_NDK_HOME"])
        revision = (properties / "source.properties").read_text()
        ndk = int(re.findall(r"Pkg.Revision *= *(\d+)", revision)[0])
    return Library(content, jni, f"{compiler} for {said['SYSTEM_NAME']}", ndk)


def compile_classes(kotlin: Path, folder: Path, stubs: Path, *others: Path) -> None:
    """Compiles the Kotlin and Java of android/ into a folder.

    Args:
        kotlin: the compiler, a folder with lib/kotlin-compiler.jar.
        folder: where classes appear.
        stubs: where those of Android's classes appear that the library uses (android/stubs).
        others: more files in Kotlin.
    """
    main = ANDROID / "src" / "main"
    java = ["javac", "--release", "11", "-encoding", "UTF-8", "-Xlint:all", "-Werror"]
    subprocess.run([*java, "-d", stubs, *sorted((ANDROID / "stubs").rglob("*.java"))], check=True)
    names = ("kotlin-stdlib", "kotlinx-coroutines-core-jvm")
    uses = [stubs, *(kotlin / "lib" / f"{name}.jar" for name in names)]
    compiler = ["java", "-cp", f"{kotlin}/lib/*", "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"]
    options = [
        "-no-stdlib",
        "-no-reflect",
        "-jvm-target",
        "11",
        "-language-version",
        "2.2",
        "-Werror",
    ]
    path = ["-cp", ":".join(map(str, uses)), "-d", str(folder)]
    sources = [main / "kotlin", main / "java", *others]
    subprocess.run([*compiler, *options, *path, *sources], check=True)
    subprocess.run([*java, "-d", folder, *sorted((main / "java").rglob("*.java"))], check=True)


def kotlin_classes() -> dict[str, bytes]:
    """The classes of android/ by their names in a jar."""
    kotlin = Path(os.environ.get("KOTLIN_HOME", "")).resolve()
    if not (kotlin / "lib" / "kotlin-compiler.jar").is_file():
        sys.exit(
            f"KOTLIN_HOME is '{os.environ.get('KOTLIN_HOME', '')}', where no Kotlin compiler is: "
            "npm install kotlin-compiler, then KOTLIN_HOME=node_modules/kotlin-compiler"
        )
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as stubs:
        compile_classes(kotlin, Path(folder), Path(stubs))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
