"""The example server: each request's mistakes are its own, whatever comes with it in a batch."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.ray
ROOT = Path(__file__).parents[3]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("starlette")
    pytest.importorskip("ray.serve")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import serve  # type: ignore[import-not-found]

    return serve


@pytest.fixture
def server(example: Any, u8_file: Path) -> Any:
    """The class without Ray's batching: each image is a batch."""
    deployed = getattr(example.Server, "func_or_class", example.Server)
    made = deployed.__new__(deployed)
    made._predict = example.BatchPredictor(u8_file, device="cpu", threads=1)

    async def label(image: bytes) -> dict[str, Any]:
        return dict(made._rows([image])[0])

    made.__dict__["_label"] = label
    return made


def request(method: str, parts: Sequence[bytes], path: str = "/", pause: float = 0) -> Any:
    from starlette.requests import Request

    waiting: Iterator[bytes] = iter(parts)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        part = next(waiting, None)
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    return Request({**scope, "server": ("x", 80), "scheme": "http"}, receive)


def status(server: Any, *arguments: Any, **more: Any) -> int:
    return int(asyncio.run(server(request(*arguments, **more))).status_code)


def test_every_mistake_has_its_status(
    example: Any, server: Any, images: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = io.BytesIO()
    Image.new("LAB", (8, 8)).save(odd, "TIFF")
    assert status(server, "POST", [images[0].read_bytes()]) == 200
    assert status(server, "POST", [b"no image"]) == 400
    assert status(server, "POST", [odd.getvalue()]) == 400
    assert status(server, "POST", [bytes(1 << 20)] * 33) == 413
    assert status(server, "GET", []) == 405
    assert status(server, "GET", [], "/health") == 200
    monkeypatch.setattr(example, "MAX_SECONDS", 0.1)
    assert status(server, "POST", [b"a"] * 100, pause=0.05) == 408


def test_an_image_that_ends_its_batch_is_an_error_alone(server: Any) -> None:
    def predict(columns: dict[str, Any]) -> dict[str, Any]:
        if b"bad" in columns["image"].tolist():
            raise ValueError("bad")
        count = len(columns["image"])
        return {"error": np.array([""] * count, object), "class_index": np.arange(count)}

    server._predict = predict
    errors = [row["error"] for row in server._rows([b"a", b"bad", b"c"])]
    assert errors == ["", "cannot be computed: bad", ""]
