"""The installed Keras, for what only it can do: load models, and run the code of Lambda layers."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from phonebit.converter.importers.keras.files import first_line
from phonebit.errors import ConversionError

Function = Callable[..., Any]

INSTALL: Final = {2: "pip install larq tf-keras", 3: "pip install keras tensorflow"}


def installed_keras(major: int) -> Any:
    """The module of a generation of Keras, Larq's layers registered with it.

    Raises:
        ConversionError: It is not installed.
    """
    try:
        if major == 3:
            return import_module("keras")
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
        import_module("larq")
        return import_module("tensorflow").keras
    except ImportError as error:
        raise ConversionError(
            f"the framework that wrote the file is not installed: {error}", hint=INSTALL[major]
        ) from error


def keras_of(layer: Any) -> Any:
    """The Keras module that a live layer belongs to."""
    modules = (base.__module__.split(".")[0] for base in type(layer).__mro__)
    return import_module(next(name for name in modules if name in ("keras", "tf_keras")))


def lambda_class(keras: Any) -> Any:
    """A Lambda layer that can be read back from its configuration, which runs code from there.

    JSON turns a TensorFlow function in a closure, as in ``TFOpLayer(tf.split, 4)`` of larq-zoo,
    into its bare name. Where the code calls such a name, it is the function again.
    """

    class Lambda(keras.layers.Lambda):  # type: ignore[misc]
        @classmethod
        def from_config(cls, config: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            if callable(config["function"]):
                return cls(**config)
            layer = super().from_config(dict(config), *args, **kwargs)
            layer.function = _with_functions_in_closure(layer.function)
            return layer

    return Lambda


def rebuilt_lambda(config: dict[str, Any], major: int) -> Any:
    """The Lambda layer of a configuration. This runs code from there: trusted files only.

    Raises:
        ConversionError: Keras is not installed, or cannot read the code.
    """
    layer = lambda_class(installed_keras(major))
    try:
        return layer.from_config(config, **({"safe_mode": False} if major == 3 else {}))
    except Exception as error:  # marshalled code of another Python raises nearly anything
        raise ConversionError(
            f"its Python code cannot be read: {first_line(error)}",
            hint="load the model with the Python and Keras that saved it, and convert it live",
        ) from error


def recorded_call(layer: Any, shapes: list[tuple[int, ...]], dtypes: list[str]) -> str:
    """What the function of a Lambda layer does to tensors, as the JSON of a Functional model.

    Args:
        layer: The live layer.
        shapes: Of its inputs, without the batch.
        dtypes: Of its inputs.

    Raises:
        ConversionError: The function cannot run on symbolic tensors.
    """
    keras = keras_of(layer)
    inputs = [keras.Input(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    arguments = dict(getattr(layer, "arguments", None) or {})
    names = _parameters(layer.function)
    arguments |= {k: v for k, v in {"mask": None, "training": False}.items() if k in names}
    try:
        outputs = layer.function(inputs if len(inputs) > 1 else inputs[0], **arguments)
        text: str = keras.Model(inputs, outputs).to_json()
    except Exception as error:  # user code of any kind
        raise ConversionError(
            f"its function does not run on symbolic tensors: {first_line(error)}"
        ) from error
    return text


def _parameters(function: Function) -> tuple[str, ...]:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()


def _with_functions_in_closure(function: Function) -> Function:
    if not isinstance(function, types.FunctionType):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if "'str' object is not callable" not in str(error):
                raise
        tensorflow = import_module("tensorflow")
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        found = [getattr(tensorflow, v, v) if isinstance(v, str) else v for v in cells]
        restored = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(types.CellType(value) for value in found),
        )
        return restored(*args, **kwargs)

    return call
