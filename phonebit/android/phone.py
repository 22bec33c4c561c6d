"""What a phone is, as its system tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from phonebit.errors import DeviceError

MIN_API: Final = 24
"""Android 7.0, for which the native tools are built."""


@dataclass(frozen=True)
class Phone:
    """Facts about a device.

    Attributes:
        model: "Pixel 8".
        android: "14".
        api: level of the system's interface, 34.
        soc: "Google Tensor G3"; the board's name where the system does not tell the chip's.
        abis: kinds of machine code that it runs, the best first.
    """

    model: str
    android: str
    api: int
    soc: str
    abis: tuple[str, ...]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Phone:
        """Reads Android's properties.

        Raises:
            DeviceError: they are not a phone's, or its Android is too old.
        """
        names = (properties.get(f"ro.soc.{name}", "") for name in ("manufacturer", "model"))
        soc = " ".join(name for name in names if name) or properties.get("ro.board.platform", "")
        abis = properties.get("ro.product.cpu.abilist") or properties.get("ro.product.cpu.abi", "")
        level = properties.get("ro.build.version.sdk", "")
        if not level.isdecimal() or not abis:
            raise DeviceError(
                "the device does not say what it is",
                where="getprop",
                expected="ro.build.version.sdk and ro.product.cpu.abilist",
                got=f"{level!r} and {abis!r}",
                hint="see `adb shell getprop`; is it Android?",
            )
        if int(level) < MIN_API:
            raise DeviceError(
                "the device's Android is too old",
                expected=f"API level {MIN_API} (Android 7.0) or later",
                got=f"API level {level}",
            )
        return cls(
            properties.get("ro.product.model", ""),
            properties.get("ro.build.version.release", ""),
            int(level),
            soc,
            tuple(abis.split(",")),
        )

    @property
    def text(self) -> str:
        """``Pixel 8, Android 14, Google Tensor G3, arm64-v8a``."""
        facts = (self.model, f"Android {self.android}", self.soc, self.abis[0])
        return ", ".join(fact for fact in facts if fact)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return asdict(self)
