"""``phonebit web``: a page that runs networks in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phonebit.cli.console import output
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape

DEMO = ("fashion-larq", "fashion-resnet18", "garments-yolov2-tiny")


def web(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help=".pbit files.",
            show_default="the included trained networks, with images",
        ),
    ] = None,
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder of the site.")
    ] = Path("site"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Then open it to browsers on this machine.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Of --serve; 0: any free one.")
    ] = 8000,
) -> None:
    """Write a page that runs networks in any browser, on images and cameras.

    Any host of static files publishes it. It works offline and sends nothing anywhere.
    """
    from phonebit.cli.demo import model_folder, true_label
    from phonebit.images.image_files import image_files
    from phonebit.models.trained import trained_file
    from phonebit.network import Network
    from phonebit.pages.site import write_site

    samples: dict[Path, str] = {}
    if not files:
        files = [trained_file(name) for name in DEMO]
        images = image_files(model_folder() / "images")
        samples = {path: true_label(path).replace("_", " ") for path in images}
    for file in files:
        Network.load(file, device="cpu")  # says what a page would say later
    size = write_site(target, files, samples)
    output().print(f"wrote [bold]{escape(str(target))}[/], {bytes_text(size)}", soft_wrap=True)
    if serve:
        _serve(target, port)


def _serve(folder: Path, port: int) -> None:
    from phonebit.pages.site_server import site_server

    with site_server(folder, port) as server:
        address = f"http://localhost:{server.server_port}/"
        output().print(f"{address} until Ctrl-C", soft_wrap=True)
        server.serve_forever()
