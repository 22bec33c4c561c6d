"""A server for a site on this machine, with the headers that its ``_headers`` file asks for."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from phonebit.pages.site import HEADERS


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the page tells what goes wrong."""


def site_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of ``folder`` for this machine alone, not yet running.

    Args:
        folder: the site.
        port: 0: any free one.

    Raises:
        OSError: if the port is taken.
    """
    return ThreadingHTTPServer(("localhost", port), partial(_Handler, directory=str(folder)))
