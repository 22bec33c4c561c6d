"""A static site that runs networks in browsers: a page, the npm package and ``.pbit`` files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from phonebit.errors import InputError
from phonebit.output_files import write_atomically

HERE: Final = Path(__file__).parent
PAGE: Final = HERE / "site_files"
PACKAGE: Final = HERE / "npm_package"
"""Where ``packaging/web.py`` puts the npm package; wheels bring it."""
LIST: Final = "site.json"
ISOLATION: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""With these a page may have threads."""
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; style-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {**ISOLATION, "Content-Security-Policy": POLICY}
_PACKAGE_FILES: Final = (".js", ".mjs", ".wasm", "LICENSE")


def write_site(target: Path, networks: Sequence[Path], samples: Mapping[Path, str]) -> int:
    """Write a site that any host of static files can publish, also below a path.

    Args:
        target: folder of the site; made if it is missing. It is empty or holds a site.
        networks: sound ``.pbit`` files.
        samples: image files and what they show.

    Returns:
        The size of the site in bytes.

    Raises:
        InputError: if two networks have one name, ``target`` holds something else, or this
            installation lacks the engine for browsers.
        OSError: if a file cannot be read or written.
    """
    _check_target(target)
    names = [path.name for path in networks]
    if len(set(names)) < len(names):
        raise InputError("two networks have one name", got=", ".join(sorted(names)))
    content = _page() | _package()
    content |= {f"networks/{path.name}": path.read_bytes() for path in networks}
    content |= {f"samples/{path.name}": path.read_bytes() for path in samples}
    content[LIST] = _list(names, {path.name: label for path, label in samples.items()})
    content["service_worker.js"] = _service_worker(content)
    lines = "".join(f"  {name}: {value}\n" for name, value in HEADERS.items())
    content["_headers"] = f"/*\n{lines}".encode()
    for name, data in content.items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, data)
    return sum(map(len, content.values()))


def _check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise InputError("not a folder", where=str(target), hint="give another output path")
    if target.exists() and any(target.iterdir()) and not (target / LIST).is_file():
        raise InputError(
            "the folder holds something else than a site",
            where=str(target),
            hint="give an empty or new folder",
        )


def _page() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(PAGE.iterdir()) if file.is_file()}


def _package() -> dict[str, bytes]:
    if not (PACKAGE / "single" / "phonebit.wasm").is_file():
        raise InputError(
            "this installation lacks the engine for browsers",
            hint="in a checkout of PhoneBit run `python packaging/web.py -o "
            "phonebit/pages/npm_package`, or install a wheel",
        )
    files = [file for file in sorted(PACKAGE.rglob("*")) if file.name.endswith(_PACKAGE_FILES)]
    return {f"package/{file.relative_to(PACKAGE).as_posix()}": file.read_bytes() for file in files}


def _list(networks: Sequence[str], samples: Mapping[str, str]) -> bytes:
    document = {
        "networks": [
            {"name": name.removesuffix(".pbit"), "file": f"networks/{name}"} for name in networks
        ],
        "samples": [{"label": label, "file": f"samples/{name}"} for name, label in samples.items()],
    }
    return json.dumps(document, indent=2).encode()


def _service_worker(content: Mapping[str, bytes]) -> bytes:
    """The script after what it keeps; another content is another version."""
    digest = hashlib.sha256()
    for name, data in sorted(content.items()):
        digest.update(f"{name} {len(data)} ".encode() + data)
    files = ["./", *(name for name in content if name != "service_worker.js")]
    constants = (
        f"const VERSION = {json.dumps(digest.hexdigest()[:16])};\n"
        f"const FILES = {json.dumps(files)};\n"
    )
    return constants.encode() + content["service_worker.js"]
