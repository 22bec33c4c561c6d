"""PhoneBit: an inference engine for binary neural networks.

::

    import phonebit

    phonebit.convert("model.h5", "model.pbit")
    network = phonebit.Network.load("model.pbit")
    scores = network(images)  # NHWC, batch first

``import phonebit`` itself is light: neither a training framework, nor the compiled runtime, nor the
command line's libraries are loaded before something that needs them is used.
"""

from __future__ import annotations

import importlib
import typing

from phonebit.errors import (
    CancelledError,
    ConversionError,
    DeviceError,
    InputError,
    ModelFormatError,
    PhoneBitError,
    PhoneBitWarning,
    UnsupportedLayerError,
    VerificationError,
)

if typing.TYPE_CHECKING:
    from phonebit.converter.convert import ConvertOptions, convert
    from phonebit.devices.loading import EngineOptions
    from phonebit.devices.tuning import tune
    from phonebit.evaluation.evaluate import evaluate
    from phonebit.images.preprocessing import Preprocessing
    from phonebit.network import Network
    from phonebit.planner.cost_models import collect
    from phonebit.planner.planning_files import plan
    from phonebit.torch.accelerate import accelerate
    from phonebit.verification.verify import verify

    __version__: str

__all__ = [
    "CancelledError",
    "ConversionError",
    "ConvertOptions",
    "DeviceError",
    "EngineOptions",
    "InputError",
    "ModelFormatError",
    "Network",
    "PhoneBitError",
    "PhoneBitWarning",
    "Preprocessing",
    "UnsupportedLayerError",
    "VerificationError",
    "__version__",
    "accelerate",
    "collect",
    "convert",
    "evaluate",
    "plan",
    "tune",
    "verify",
]

_HOMES = {
    "ConvertOptions": "phonebit.converter.convert",
    "EngineOptions": "phonebit.devices.loading",
    "Network": "phonebit.network",
    "Preprocessing": "phonebit.images.preprocessing",
    "accelerate": "phonebit.torch.accelerate",
    "collect": "phonebit.planner.cost_models",
    "convert": "phonebit.converter.convert",
    "evaluate": "phonebit.evaluation.evaluate",
    "plan": "phonebit.planner.planning_files",
    "tune": "phonebit.devices.tuning",
    "verify": "phonebit.verification",
}
"""Where public names are that are loaded on first use."""


def __getattr__(name: str) -> typing.Any:
    """Load a public name on first use and keep it as an ordinary module attribute.

    Args:
        name: attribute that is not in the module yet.

    Returns:
        The class, function or string.

    Raises:
        AttributeError: if phonebit has no such name.
    """
    value: typing.Any
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name == "__version__":
        value = _installed_version()
    else:
        raise AttributeError(f"module 'phonebit' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, those not loaded yet included, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def _installed_version() -> str:
    """Version of the installed distribution, or "0+unknown" in a bare source tree."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("phonebit")
    except PackageNotFoundError:
        return "0+unknown"
