"""The npm package of packaging/web.py in Chromium, by Playwright: threads, images, cameras, errors.

PHONEBIT_WEB names the folder that packaging/web.py has filled.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import Network
from phonebit.images.image_files import load_image
from phonebit.network.tasks import class_probabilities

ROOT = Path(__file__).parents[2]
LARQ = ROOT / "models" / "trained" / "fashion-larq.pbit"
GARMENT = ROOT / "models" / "fashion_mnist" / "images" / "0000_ankle_boot.png"
POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'"
ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder with the policy of docs/web.md; isolated below /isolated."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix("/isolated"))

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        if self.path.startswith("/isolated"):
            for name, value in ISOLATION.items():
                self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = os.environ.get("PHONEBIT_WEB")
    if folder is None:
        pytest.skip("PHONEBIT_WEB names no folder of packaging/web.py")
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(folder, root, dirs_exist_ok=True)
    shutil.copy(LARQ, root)
    shutil.copy(GARMENT, root / "garment.png")
    (root / "page.html").write_text(
        '<!doctype html><title>Test</title><script type="module" src="page.mjs"></script>'
    )
    (root / "page.mjs").write_text(
        'import * as phonebit from "./phonebit.mjs"; Object.assign(window, { phonebit });'
    )
    (root / "favicon.ico").touch()
    server = ThreadingHTTPServer(("localhost", 0), partial(Handler, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()


def load(page: Any, url: str) -> None:
    page.goto(url)
    page.wait_for_function("window.phonebit !== undefined")


@pytest.mark.parametrize(("folder", "threads"), [("", 1), ("/isolated", 2)])
def test_an_image_has_the_classes_that_python_gives(
    site: str, page: Any, folder: str, threads: int
) -> None:
    load(page, f"{site}{folder}/page.html")
    given = page.evaluate(
        """async (threads) => {
          const progress = [];
          const network = await phonebit.Network.load("fashion-larq.pbit",
            { threads, onProgress: (p) => progress.push(p) });
          const bitmap = await createImageBitmap(await (await fetch("garment.png")).blob());
          const classes = [...await network.classify(bitmap, { top: 3 })];
          const profile = await network.profile({ repeats: 2 });
          network.close();
          return { device: network.device, threads: network.threads, classes,
            layers: profile.length, progress: progress.at(-1),
            supports: phonebit.supportsThreads() };
        }""",
        threads,
    )
    assert (given["device"], given["threads"]) == ("cpu:wasm_simd", threads)
    assert given["supports"] == (threads > 1)
    size = LARQ.stat().st_size
    assert given["progress"] == {"loaded": size, "total": size}
    network = Network.load(LARQ, device="cpu")
    assert given["layers"] == len(network.layers)
    rule = next(iter(network.preprocessing.values()), None)
    values = network.forward(load_image(GARMENT, network.inputs[0], rule).array[None])
    expected = class_probabilities(network, np.asarray(values, np.float64).ravel())
    order = np.argsort(-expected, kind="stable")[:3]
    assert [found["index"] for found in given["classes"]] == list(order)
    probabilities = [found["probability"] for found in given["classes"]]
    np.testing.assert_allclose(probabilities, expected[order], rtol=1e-5)


def test_a_camera_s_frames_are_images(site: str, page: Any) -> None:
    load(page, f"{site}/page.html")
    found = page.evaluate(
        """async () => {
          const network = await phonebit.Network.load("fashion-larq.pbit");
          const video = document.createElement("video");
          video.srcObject = await navigator.mediaDevices.getUserMedia({ video: true });
          await video.play();
          const counts = [];
          for (let i = 0; i < 3; i++) counts.push((await network.classify(video)).length);
          network.close();
          return counts;
        }"""
    )
    assert found == [5, 5, 5]


def test_errors_leave_the_page_alive(site: str, page: Any) -> None:
    load(page, f"{site}/page.html")
    errors = page.evaluate(
        """async () => {
          const told = (promise) =>
            promise.then(() => "no error", (error) => `${error.name}: ${error.message}`);
          const { Network } = phonebit;
          const hostile = new TextEncoder().encode("<html>404</html>");
          const network = await Network.load("fashion-larq.pbit");
          const errors = [
            await told(Network.load(hostile)),
            await told(Network.load("fashion-larq.pbit", { threads: 2 })),
            await told(network.classify(new Image())),
            await told(Network.load(1)),
          ];
          const waiting = told(network.profile({ repeats: 1000 }));
          network.close();
          errors.push(await waiting);
          const again = await Network.load("fashion-larq.pbit");
          errors.push(again.device);
          again.close();
          return errors;
        }"""
    )
    expected = [
        "PhoneBitError: memory of 16 bytes: 16 bytes are too short for a .pbit file",
        "PhoneBitError: threads: got 2, but this page is not cross-origin isolated",
        "PhoneBitError: image: it has no pixels yet",
        "PhoneBitError: source: got number, expected a URL or the bytes of a .pbit file",
        "PhoneBitError: the network is closed",
        "cpu:wasm_simd",
    ]
    for error, sentence in zip(errors, expected, strict=True):
        assert error.startswith(sentence), error
