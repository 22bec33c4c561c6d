"""An HTTP server for a classifier or detector, with Ray Serve.

Requests that arrive at the same time are computed as one batch::

    pip install 'phonebit[ray]' 'ray[serve]'
    serve run examples.serve:app model=model.pbit
    curl --data-binary @cat.png http://127.0.0.1:8000/

``GET /health`` answers 200 while a network is loaded. Ray Serve restarts a replica whose
``check_health`` fails. A body that is too large or too slow is an error of its request (413, 408),
and so is an image that cannot be computed (400): the others of its batch get their results.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import numpy as np
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from phonebit.batch import BatchPredictor
from phonebit.errors import DeviceError

MAX_BYTES: Final = 32 << 20
"""Of a request's body."""
MAX_SECONDS: Final = 5.0
"""Until the body is there: requests that wait for theirs take the place of others."""


@serve.deployment(
    ray_actor_options={"num_cpus": 1}, max_ongoing_requests=128, health_check_period_s=10
)
class Server:
    """One replica: a network, and the requests that wait for it."""

    def __init__(self, model: str) -> None:
        self._predict = BatchPredictor(model)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.005)
    async def _label(self, images: list[bytes]) -> list[dict[str, Any]]:
        return self._rows(images)

    def _rows(self, images: list[bytes]) -> list[dict[str, Any]]:
        """The results of images; what ends all of them is the error of those that it is due to."""
        column = np.empty(len(images), np.object_)
        column[:] = images
        try:
            found = self._predict({"image": column})
        except DeviceError:
            raise
        except Exception as error:
            if len(images) == 1:
                return [{"error": f"cannot be computed: {error}"}]
            return [row for image in images for row in self._rows([image])]
        columns = {name: array.tolist() for name, array in found.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def check_health(self) -> None:
        """Compute nothing, as one image: an exception here replaces the replica."""
        info = self._predict.network.inputs[0]
        self._predict.network(np.zeros((1, *info.shape), "uint8" if info.dtype == "u8" else "f4"))

    async def __call__(self, request: Request) -> Response:
        """Labels of an image file, or the status that says why there are none."""
        if request.url.path == "/health":
            return Response("ok")
        if request.method != "POST":
            return _refused(405, "send an image with POST", Allow="POST")
        try:
            image = await asyncio.wait_for(_body(request), MAX_SECONDS)
        except TimeoutError:
            return _refused(408, f"the body was not there after {MAX_SECONDS:g} s")
        if image is None:
            return _refused(413, f"an image file has at most {MAX_BYTES} bytes")
        result = await self._label(image)
        return _refused(400, result["error"]) if result["error"] else JSONResponse(result)


async def _body(request: Request) -> bytes | None:
    """The body; None, without reading the rest, if it is too large."""
    parts, left = [], MAX_BYTES
    async for part in request.stream():
        left -= len(part)
        if left < 0:
            return None
        parts.append(part)
    return b"".join(parts)


def _refused(status: int, why: str, **headers: str) -> Response:
    return JSONResponse({"error": why}, status_code=status, headers=headers)


def app(arguments: dict[str, str]) -> serve.Application:
    """The application for ``serve run``."""
    return Server.bind(arguments["model"])
