"""Everything that is linked loads on a phone with pages of 16 kB; read from the files' headers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from phonebit import _runtime

SCRIPT = Path(__file__).parent / "check_pages.py"
spec = importlib.util.spec_from_file_location("check_pages", SCRIPT)
assert spec is not None and spec.loader is not None
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)


def native_files() -> list[str]:
    """The Python module, and libphonebit.so and the tools where they are built."""
    tools = os.environ.get("PHONEBIT_TOOLS")
    programs = [] if tools is None else [f"{tools}/phonebit_{name}" for name in ("bench", "run")]
    library = os.environ.get("PHONEBIT_LIBRARY")
    return [str(_runtime.__file__), *([] if library is None else [library]), *programs]


@pytest.mark.parametrize("path", native_files(), ids=lambda path: Path(path).name)
def test_native_files_load_with_pages_of_16_kb(path: str) -> None:
    assert min(check.alignments(Path(path).read_bytes())) >= check.PAGE_BYTES


@pytest.mark.parametrize("bytes_", [4096, 16384])
def test_alignments_are_those_that_the_linker_was_told(tmp_path: Path, bytes_: int) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ or name one in CXX")
    library = tmp_path / "library.so"
    options = ["-shared", "-nostdlib", "-x", "c++", "-", f"-Wl,-z,max-page-size={bytes_}"]
    subprocess.run([compiler, *options, "-o", library], input=b"int value = 1;", check=True)
    assert set(check.alignments(library.read_bytes())) == {bytes_}
    assert check.main([str(library)]) == (bytes_ < 16384)


def test_other_files_are_refused() -> None:
    for content in (b"", b"PBIT" + bytes(60), b"\x7fELF\x02\x02" + bytes(60)):
        with pytest.raises(ValueError, match="little-endian ELF"):
            check.alignments(content)
    with pytest.raises(ValueError, match="nothing of this file is loaded"):
        check.alignments(b"\x7fELF\x02\x01" + bytes(60))
