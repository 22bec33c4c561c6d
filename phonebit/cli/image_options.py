"""Options of image preprocessing, shared by all commands."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.images.preprocessing import Preprocessing
    from phonebit.images.settings import Fields
    from phonebit.layer_info import TensorInfo
    from phonebit.network import Network

PANEL: Final = "Image preprocessing"
FLAGS: Final = {
    "range": "--input-range",
    "mean": "--mean",
    "std": "--std",
    "color": "--color",
    "resize": "--resize",
    "interpolation": "--interpolation",
}
"""Flags by the name of their setting in a TOML file."""


def _option(setting: str, metavar: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        FLAGS[setting], metavar=metavar, help=text, rich_help_panel=PANEL
    )
    return option


RangeOption = Annotated[
    str | None,
    _option(
        "range", "LOW,HIGH", "Values of levels 0 and 255 before mean and std: --input-range=-1,1."
    ),
]


@dataclass(frozen=True)
class ImageFlags:
    """What a user typed, as text; None where nothing."""

    range: RangeOption = None
    mean: Annotated[
        str | None, _option("mean", "M[,M,M]", "Mean to subtract; one number, or one per channel.")
    ] = None
    std: Annotated[
        str | None,
        _option(
            "std", "S[,S,S]", "Standard deviation to divide by; one number, or one per channel."
        ),
    ] = None
    color: Annotated[
        str | None, _option("color", "ORDER", "Channel order: rgb, bgr, gray, rgba or none.")
    ] = None
    resize: Annotated[
        str | None,
        _option("resize", "HOW", "stretch, shorter:PIXELS, letterbox or letterbox:LEVEL."),
    ] = None
    interpolation: Annotated[
        str | None,
        _option("interpolation", "HOW", "nearest, bilinear or bicubic, as in Pillow."),
    ] = None
    preprocessing: Annotated[
        Path | None,
        typer.Option(
            "--preprocessing",
            metavar="FILE",
            help="TOML file with all settings, or imagenet; options override it.",
            rich_help_panel=PANEL,
        ),
    ] = None

    def inputs(self) -> list[Path]:
        """The files that they name: the TOML file, and the labels that it names.

        Raises:
            InputError: if the TOML file is wrong.
        """
        from phonebit.images.settings import PRESETS, read_toml

        if self.preprocessing is None:
            return []
        labels = read_toml(self.preprocessing).labels_file
        files = [] if str(self.preprocessing) in PRESETS else [self.preprocessing]
        return files if labels is None else [*files, labels]

    def for_conversion(
        self, *, is_needed: bool = False
    ) -> tuple[Preprocessing | None, list[str] | None]:
        """The rule that the converted file shall hold, and the labels that the TOML file names.

        Args:
            is_needed: whether the file must have a rule.

        Raises:
            InputError: if a flag or the file is wrong, or something but not the range is given.
        """
        from phonebit.images.preprocessing import make_preprocessing

        settings, labels = self._settings()
        if not settings and not is_needed:
            return None, labels
        return make_preprocessing(settings, f"{FLAGS['range']}=LOW,HIGH"), labels

    def rule_for(self, network: Network, info: TensorInfo) -> Preprocessing | None:
        """The rule for an input of a loaded file: the file's own, changed by the flags.

        Raises:
            InputError: if a flag is wrong, or would change values that the network computes itself.
        """
        from phonebit.images.preprocessing import make_preprocessing

        settings, _ = self._settings()
        stored = network.preprocessing.get(info.name)
        if not settings:
            return stored
        folded = [FLAGS[name] for name in ("range", "mean", "std") if name in settings]
        if info.dtype == "u8" and folded:
            raise InputError(
                f"{', '.join(folded)} cannot be changed",
                where=f"input '{info.name}'",
                got="an input of image levels, whose values the network computes itself",
                hint="convert the network again to change them",
            )
        if stored is not None:
            return replace(stored, **settings)
        if info.dtype == "u8":
            settings["range"] = (0.0, 255.0)
        return make_preprocessing(settings, f"{FLAGS['range']}=LOW,HIGH")

    def _settings(self) -> tuple[Fields, list[str] | None]:
        from phonebit.images.settings import SETTINGS, PreprocessingFile, read_toml

        read = (
            read_toml(self.preprocessing) if self.preprocessing is not None else PreprocessingFile()
        )
        settings = dict(read.fields)
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name in SETTINGS:
                settings |= SETTINGS[field.name](value, FLAGS[field.name])
        return settings, read.labels
