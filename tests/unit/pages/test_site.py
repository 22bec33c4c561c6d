"""``phonebit web`` writes a site whose files are all there, and refuses what it would destroy."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from pathlib import Path

import pytest

from phonebit.models.trained import trained_file
from phonebit.pages import site
from phonebit.pages.site_server import site_server
from support.cli_process import Cli

LARQ = trained_file("fashion-larq")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "package"
    (folder / "single").mkdir(parents=True)
    (folder / "single" / "phonebit.wasm").write_bytes(b"\0asm")
    (folder / "phonebit.mjs").write_text("export {};")
    monkeypatch.setattr(site, "PACKAGE", folder)
    return folder


def written_files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {
        "service_worker.js"
    }


def kept_files(folder: Path) -> tuple[str, list[str]]:
    lines = (folder / "service_worker.js").read_text().splitlines()
    version, files = (json.loads(line.split(" = ", 1)[1].rstrip(";")) for line in lines[:2])
    return version, files


def test_a_site_keeps_all_its_files_offline(cli: Cli, package: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    assert cli("web", LARQ, "-o", target).code == 0
    version, files = kept_files(target)
    assert set(files) == written_files(target) - {"_headers"} | {"./"}
    assert json.loads((target / "site.json").read_text()) == {
        "networks": [{"name": "fashion-larq", "file": "networks/fashion-larq.pbit"}],
        "samples": [],
    }
    assert (target / "networks/fashion-larq.pbit").read_bytes() == LARQ.read_bytes()
    assert cli("web", LARQ, "-o", target).code == 0  # a site makes way for a site
    assert kept_files(target) == (version, files)
    (package / "phonebit.mjs").write_text("export { };")
    assert cli("web", LARQ, "-o", target).code == 0
    assert kept_files(target)[0] != version


@pytest.mark.usefixtures("package")
def test_without_files_the_trained_networks_and_images_are_there(cli: Cli, tmp_path: Path) -> None:
    assert cli("web", "-o", tmp_path / "site").code == 0
    listed = json.loads((tmp_path / "site/site.json").read_text())
    assert len(listed["networks"]) == 3
    assert {"label": "ankle boot", "file": "samples/0000_ankle_boot.png"} in listed["samples"]
    assert len(listed["samples"]) == 20


@pytest.mark.usefixtures("package")
def test_what_is_no_site_stays(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "folder" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    message = cli.refused("web", LARQ, "-o", notes.parent)
    assert "holds something else than a site" in message
    assert list(notes.parent.iterdir()) == [notes]
    assert "not a folder" in cli.refused("web", LARQ, "-o", notes)


@pytest.mark.usefixtures("package")
def test_files_that_are_no_networks_are_refused(cli: Cli, tmp_path: Path) -> None:
    wrong = tmp_path / "page.pbit"
    wrong.write_text("<html>404</html>")
    assert "page.pbit" in cli.refused("web", wrong, "-o", tmp_path / "site")
    assert "two networks have one name" in cli.refused("web", LARQ, LARQ, "-o", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_without_the_engine_for_browsers_it_is_said_how_to_get_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "PACKAGE", tmp_path / "absent")
    message = cli.refused("web", LARQ, "-o", tmp_path / "site")
    assert "lacks the engine for browsers" in message
    assert "python packaging/web.py" in message


def test_the_server_and_the_page_have_one_policy(tmp_path: Path) -> None:
    page = (site.PAGE / "index.html").read_text()
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    assert f"{found[1]}; frame-ancestors 'none'" == site.POLICY
    (tmp_path / "page.mjs").write_text("export {};")
    with site_server(tmp_path, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://localhost:{server.server_port}/page.mjs") as answer:
            headers = dict(answer.headers)
        server.shutdown()
    assert headers.items() >= {**site.HEADERS, "Content-type": "text/javascript"}.items()
