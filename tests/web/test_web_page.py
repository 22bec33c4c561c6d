"""The page of ``phonebit web`` in Chromium: images, cameras, boxes, threads, offline, errors.

PHONEBIT_WEB names the folder that packaging/web.py has filled; PHONEBIT_AXE, if it is there, the
axe.min.js of tests/web/axe, which then must find nothing; PHONEBIT_SCREENSHOTS a folder.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import Network
from phonebit.comparing import compare
from phonebit.images.image_files import load_image
from phonebit.models.trained import trained_file
from phonebit.network.tasks import class_probabilities
from phonebit.pages import site
from phonebit.pages.site_server import site_server

ROOT = Path(__file__).parents[2]
LARQ = trained_file("fashion-larq")
GARMENT = ROOT / "models" / "fashion_mnist" / "images" / "0000_ankle_boot.png"
READY = "document.body.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = os.environ.get("PHONEBIT_WEB")
    if package is None:
        pytest.skip("PHONEBIT_WEB names no folder of packaging/web.py")
    target = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "PACKAGE", Path(package))
        networks = [LARQ, trained_file("garments-yolov2-tiny")]
        site.write_site(target / "below", networks, {GARMENT: "ankle boot"})
    return target


class PlainHandler(SimpleHTTPRequestHandler):
    """A host that sends no headers of its own."""

    def log_message(self, *_: object) -> None:
        pass


Serve = Callable[[ThreadingHTTPServer], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(server: ThreadingHTTPServer) -> str:
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://localhost:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def wait(page: Any, condition: str) -> None:
    """Until it holds. Playwright's own waiting evaluates texts, which the page's policy bans."""
    for _ in range(600):
        try:
            if page.evaluate(condition):
                return
        except Exception as error:  # the page reloads itself
            if "navigation" not in str(error):
                raise
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {condition}; the page says: {page.inner_text('body')}")


def visit(page: Any, address: str) -> None:
    page.goto(address)
    wait(page, READY)
    assert page.locator("#error").is_hidden(), page.locator("#error").inner_text()


def results(page: Any) -> list[str]:
    wait(page, "document.querySelectorAll('#results li').length > 0")
    return [text.replace("\n", " ") for text in page.locator("#results li").all_inner_texts()]


def test_an_image_has_python_s_classes_with_and_without_threads(
    folder: Path, page: Any, serve: Serve
) -> None:
    visit(page, serve(site_server(folder, 0)) + "/below/")
    network = Network.load(LARQ, device="cpu")
    rule = next(iter(network.preprocessing.values()), None)
    values = network.forward(load_image(GARMENT, network.inputs[0], rule).array[None])
    shares = class_probabilities(network, np.asarray(values, np.float64).ravel())
    order = np.argsort(-shares, kind="stable")[:5]
    expected = [f"{network.labels[i]} {100 * shares[i]:.1f} %" for i in order]
    for threads in ("1", "2"):
        page.select_option("#threads", threads)
        wait(page, f"document.getElementById('facts').textContent.includes(', {threads} thread')")
        page.click("#samples button")
        assert results(page) == expected


def test_a_plain_host_gets_threads_and_works_offline(folder: Path, page: Any, serve: Serve) -> None:
    server = ThreadingHTTPServer(("localhost", 0), partial(PlainHandler, directory=str(folder)))
    address = serve(server) + "/below/"
    page.goto(address)
    wait(page, f"crossOriginIsolated && {READY}")
    server.shutdown()
    server.server_close()
    visit(page, address)
    page.click("#samples button")
    assert results(page)[0].startswith("ankle_boot ")


def test_boxes_of_a_camera_s_frames(folder: Path, page: Any, serve: Serve) -> None:
    visit(page, serve(site_server(folder, 0)) + "/below/")
    page.select_option("#network", label="garments-yolov2-tiny")
    wait(page, "document.getElementById('facts').textContent.includes('416×416×3')")
    page.click("#camera")
    wait(page, "document.getElementById('latency').textContent !== ''")
    assert page.get_attribute("#camera", "aria-pressed") == "true"
    page.click("#camera")
    assert page.get_attribute("#camera", "aria-pressed") == "false"
    assert page.locator("#error").is_hidden()
    assert results(page)


def test_files_that_are_no_networks_are_a_sentence_and_the_page_lives(
    folder: Path, page: Any, serve: Serve
) -> None:
    visit(page, serve(site_server(folder, 0)) + "/below/")
    whole = LARQ.read_bytes()
    for content in (b"<html>404</html>", whole[:1000], whole[:-100] + bytes(100)):
        wrong = {"name": "wrong.pbit", "mimeType": "application/octet-stream", "buffer": content}
        page.set_input_files("#file", wrong)
        wait(page, "!document.getElementById('error').hidden")
        assert page.locator("#error").inner_text().startswith("wrong.pbit: memory of ")
        page.set_input_files("#image", GARMENT)
        wait(page, "document.getElementById('error').hidden")
        assert len(results(page)) == 5
    page.set_input_files("#image", {"name": "a.png", "mimeType": "image/png", "buffer": b"no"})
    wait(page, "!document.getElementById('error').hidden")
    assert "a.png: this browser does not read it" in page.locator("#error").inner_text()


def test_a_measurement_is_one_that_compare_reads(
    folder: Path, page: Any, serve: Serve, tmp_path: Path
) -> None:
    visit(page, serve(site_server(folder, 0)) + "/below/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#bench")
    page.click("#copy")
    wait(page, "document.getElementById('measured').textContent === 'Copied.'")
    text = page.evaluate("navigator.clipboard.readText()")
    result = tmp_path / "browser.json"
    result.write_text(text)
    document = json.loads(text)
    assert (document["device"], document["file"]) == ("cpu:wasm_simd", "fashion-larq")
    assert 0 < document["min_ms"] <= document["median_ms"] <= document["p90_ms"]
    compared = compare(result, result)
    layers = len(Network.load(LARQ, device="cpu").layers)
    assert len(compared["layers"]) == layers
    assert page.locator("#layers tbody tr").count() == layers
    assert compared["differences"] == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_every_screen_and_reader_has_the_whole_page(
    folder: Path, page: Any, serve: Serve, scheme: str, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    visit(page, serve(site_server(folder, 0)) + "/below/")
    page.click("#samples button")
    results(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#bench")
    wait(page, "!document.getElementById('layers').hidden")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if checker := os.environ.get("PHONEBIT_AXE"):
        page.evaluate(Path(checker).read_text())
        assert page.evaluate("axe.run().then((found) => found.violations.map((v) => v.id))") == []
    if folder := os.environ.get("PHONEBIT_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{scheme}-{width}.png", full_page=True)
