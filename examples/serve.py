"""An HTTP server for a classifier or detector, with Ray Serve.

Requests that arrive at the same time are computed as one batch::

    pip install 'phonebit[ray]' 'ray[serve]'
    serve run examples.serve:app model=model.pbit
    curl --data-binary @cat.png http://127.0.0.1:8000/

``GET /health`` answers 200 while a network is loaded. Ray Serve restarts a replica whose
``check_health`` fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from phonebit.batch import BatchPredictor


@serve.deployment(
    ray_actor_options={"num_cpus": 1}, max_ongoing_requests=128, health_check_period_s=10
)
class Server:
    """One replica: a network, and the requests that wait for it."""

    def __init__(self, model: str) -> None:
        self._predict = BatchPredictor(model)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.005)
    async def _label(self, images: list[bytes]) -> list[dict[str, Any]]:
        column = np.empty(len(images), np.object_)
        column[:] = images
        columns = {name: array.tolist() for name, array in self._predict({"image": column}).items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def check_health(self) -> None:
        """Compute nothing, as one image: an exception here replaces the replica."""
        info = self._predict.network.inputs[0]
        self._predict.network(np.zeros((1, *info.shape), "uint8" if info.dtype == "u8" else "f4"))

    async def __call__(self, request: Request) -> Response:
        """Labels of an image file; 400 if it is none."""
        if request.url.path == "/health":
            return Response("ok")
        result = await self._label(await request.body())
        if result["error"]:
            return JSONResponse({"error": result["error"]}, status_code=400)
        return JSONResponse(result)


def app(arguments: dict[str, str]) -> serve.Application:
    """The application for ``serve run``."""
    return Server.bind(arguments["model"])
