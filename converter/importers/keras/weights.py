"""Where the weights of a layer are: in an HDF5 file of either Keras generation.

Nothing is read until a layer asks for a weight by its role and by the shape that its configuration
implies, so a file cannot make us allocate more than the network needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np

from phonebit.converter.importers.hdf5 import Attribute, DamagedError, Dataset, Group
from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec
from phonebit.converter.importers.keras.roles import weight_roles
from phonebit.converter.ir import FloatArray
from phonebit.errors import ConversionError

MAX_WEIGHT_BYTES: Final = 2 << 30
"""All weights of one model together."""

Path = tuple[str, ...]
"""Names of the nested models and, last, of the layer."""


class WeightSource(Protocol):
    """Gives the weights of a model's layers."""

    def read(self, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
        """The float32 weight ``role`` (such as "kernel") of the layer at ``path``.

        Raises:
            ConversionError: if it is missing, of another shape, not floating point or not finite.
        """
        ...

    def names(self, path: Path) -> list[str]:
        """The weights of a layer of the user's own, in the order of Keras's ``get_weights``."""
        ...

    def read_own(self, path: Path, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """As ``read``, of a layer of the user's own: ``key`` is one of ``names`` or a position."""
        ...


def leaf_weights(layer: LayerSpec, path: Path) -> list[tuple[Path, str, bool]]:
    """Weights of a layer or nested model, in layer order."""
    if layer.model is None:
        return [(path, role, trainable) for role, trainable in weight_roles(layer)]
    return [
        weight
        for inner in layer.model.layers
        for weight in leaf_weights(inner, (*path, inner.name))
    ]


def leaves(layer: LayerSpec) -> Iterator[LayerSpec]:
    """The layers of a nested model, or the layer itself."""
    if layer.model is None:
        yield layer
        return
    for inner in layer.model.layers:
        yield from leaves(inner)


def describe(path: Path) -> str:
    """How errors speak of a layer."""
    return f"layer {'/'.join(path)!r}"


def short_names(names: list[str]) -> list[str]:
    """Weight names without their layer ("my_layer/scale:0" -> "scale"), as far as they differ."""
    short = [name.split(":")[0].rsplit("/", 1)[-1] for name in names]
    return [s if short.count(s) == 1 else n for s, n in zip(short, names, strict=True)]


def position(key: str | int, names: list[str], path: Path) -> int:
    """The place of a weight that is given by its name or place."""
    if isinstance(key, int) and 0 <= key < len(names):
        return key
    if key not in names:
        raise ConversionError(f"{describe(path)}: it has no weight {key!r}, but {names}")
    return names.index(str(key))


def checked(array: FloatArray, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
    """``array`` if it has the shape that the configuration implies and holds numbers only."""
    if array.shape != shape:
        raise ConversionError(
            f"{describe(path)}: its configuration implies a {role} of shape {shape}, it has "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        raise ConversionError(f"{describe(path)}: its {role} holds NaN or infinity")
    return array


class NoWeights:
    """Zeros of any shape, without memory: to look for further problems in a model that has some."""

    def read(self, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
        """A read-only view of one zero (a one for what must be positive)."""
        fill = np.float32(1 if role == "moving_variance" else 0)
        return np.broadcast_to(fill, shape)

    def names(self, path: Path) -> list[str]:
        """None."""
        return []

    def read_own(self, path: Path, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        return self.read(path, str(key), shape)


@contextmanager
def reading(path: Path, role: str) -> Iterator[None]:
    """Names the weight at which a file turns out to be damaged."""
    try:
        yield
    except (DamagedError, OSError, KeyError, ValueError, TypeError) as error:
        raise ConversionError(f"{describe(path)}: cannot read its {role}: {error}") from error


class H5Weights:
    """What the two HDF5 layouts share: checked access to datasets."""

    def __init__(self) -> None:
        self._bytes = 0

    def fetch(
        self, group: Group, name: str, path: Path, role: str, shape: tuple[int, ...]
    ) -> FloatArray:
        """Reads the dataset ``name`` below ``group`` if it is the weight that is expected."""
        what = f"{describe(path)}: its {role}"
        data = group.child(name)
        if not isinstance(data, Dataset) or not data.is_in_file:
            raise ConversionError(f"{what} is missing ({name!r} is no ordinary HDF5 dataset)")
        self._check(data, what, shape)
        return checked(np.asarray(data.read(), np.float32), path, role, shape)

    def _check(self, data: Dataset, what: str, shape: tuple[int, ...]) -> None:
        if data.shape != shape:
            raise ConversionError(
                f"{what} should have shape {shape} by its configuration, it has {data.shape}"
            )
        if data.dtype.kind != "f" or data.dtype.itemsize > 8:
            raise ConversionError(f"{what} has type {data.dtype}, expected floating point")
        self._bytes += data.size_bytes
        if self._bytes > MAX_WEIGHT_BYTES:
            raise ConversionError(f"the weights exceed {MAX_WEIGHT_BYTES >> 30} GiB")


class LegacyH5Weights(H5Weights):
    """The ``.h5`` layout: one group a top-level layer, weights listed in its ``weight_names``."""

    def __init__(self, group: Group, spec: ModelSpec) -> None:
        super().__init__()
        self._group = group
        self._spec = spec
        self._names: dict[str, dict[tuple[Path, str], str]] = {}

    def read(self, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        top = path[0]
        with reading(path, role):
            if top not in self._names:
                self._names[top] = self._match(self._spec.by_name[top])
            name = self._names[top][(path, role)]
            return self.fetch(self._group, f"{top}/{name}", path, role, shape)

    def names(self, path: Path) -> list[str]:
        """See WeightSource."""
        return short_names(self._own(path))

    def read_own(self, path: Path, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        with reading(path, str(key)):
            name = self._own(path)[position(key, self.names(path), path)]
            return self.fetch(self._group, f"{path[0]}/{name}", path, str(key), shape)

    def _own(self, path: Path) -> list[str]:
        """Dataset names of a layer; in the group of a nested model they begin with the layer's."""
        names = self._listed(path[0])
        return names if len(path) == 1 else [n for n in names if path[-1] in n.split("/")[:-1]]

    def _listed(self, top: str) -> list[str]:
        group = self._group.child(top)
        if not isinstance(group, Group):
            raise ConversionError(f"{describe((top,))}: the file holds no weights of it")
        return string_list(group.attributes, "weight_names")

    def _match(self, layer: LayerSpec) -> dict[tuple[Path, str], str]:
        """Dataset names by layer and role; Keras lists the trainable weights first."""
        weights = leaf_weights(layer, (layer.name,))
        ordered = [w for w in weights if w[2]] + [w for w in weights if not w[2]]
        others = {leaf.name for leaf in leaves(layer) if not weight_roles(leaf)}
        names = [n for n in self._listed(layer.name) if not others & set(n.split("/")[:-1])]
        if len(names) != len(ordered):
            raise ConversionError(
                f"{describe((layer.name,))}: expected {len(ordered)} weights "
                f"({', '.join(role for _, role, _ in ordered)}), the file lists {len(names)}"
            )
        result = {}
        for (path, role, _), name in zip(ordered, names, strict=True):
            stored = name.rsplit("/", 1)[-1].split(":")[0]  # Keras 3: depthwise "kernel"
            wanted = role.rsplit("/", 1)[-1]
            if stored.removeprefix("depthwise_") != wanted.removeprefix("depthwise_"):
                raise ConversionError(
                    f"{describe(path)}: expected its {role}, the file lists {name!r}"
                )
            result[(path, role)] = name
        return result


def string_list(attributes: Mapping[str, Attribute], name: str) -> list[str]:
    """A list of strings in an HDF5 attribute, which Keras splits into name0, name1, ... if long."""
    parts = [name] if name in attributes else list(_numbered(attributes, name))
    return [text for part in parts for text in _texts(attributes[part])]


def _texts(value: Attribute) -> list[str]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else [str(item) for item in value.ravel().tolist()]


def _numbered(attributes: Mapping[str, Attribute], name: str) -> Iterator[str]:
    number = 0
    while f"{name}{number}" in attributes:
        yield f"{name}{number}"
        number += 1
