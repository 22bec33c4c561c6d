"""The weights inside a ``.keras`` archive, as both Keras generations write them."""

from __future__ import annotations

import re
from typing import Final

from phonebit.converter.importers.hdf5 import Group
from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec
from phonebit.converter.importers.keras.roles import weight_roles
from phonebit.converter.importers.keras.weights import (
    H5Weights,
    Path,
    describe,
    leaf_weights,
    position,
    reading,
)
from phonebit.converter.ir import FloatArray
from phonebit.errors import ConversionError


class ArchiveWeights(H5Weights):
    """The ``model.weights.h5`` of a ``.keras`` archive: ``layers/<class name>[_<n>]/vars/<i>``."""

    CONTAINERS: Final = ("layers", "_layer_checkpoint_dependencies", "_self_tracked_trackables")

    def __init__(self, root: Group, spec: ModelSpec) -> None:
        super().__init__()
        self._root = root
        self._spec = spec
        self._found: dict[Path, dict[str, Group]] = {}

    def read(self, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        with reading(path, role):
            group = role.rpartition("/")[0]
            stored, spec = self._stored(path, group)
            roles = [name for name, _ in weight_roles(spec) if name.rpartition("/")[0] == group]
            if stored is None or len(stored.names()) != len(roles):
                count = "no" if stored is None else len(stored.names())
                raise ConversionError(
                    f"{describe(path)}: expected weights {roles}, the file has {count}"
                )
            return self.fetch(stored, str(roles.index(role)), path, role, shape)

    def names(self, path: Path) -> list[str]:
        """See WeightSource; archives number the weights of a layer."""
        stored, _ = self._stored(path)
        return [] if stored is None else [str(i) for i in range(len(stored.names()))]

    def read_own(self, path: Path, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        with reading(path, str(key)):
            stored, _ = self._stored(path)
            if isinstance(key, str) and not key.isdigit():
                raise ConversionError(
                    f"{describe(path)}: weights have no names in a .keras archive; give the "
                    f"position of {key!r} in get_weights()"
                )
            at = position(key, self.names(path), path)
            assert stored is not None
            return self.fetch(stored, str(at), path, str(key), shape)

    def _stored(self, path: Path, inner: str = "") -> tuple[Group | None, LayerSpec]:
        """The group of a layer's weights, perhaps of an inner one, and the layer."""
        group, model = self._root, self._spec
        for depth, name in enumerate(path):
            children = self._children(group, model, path[:depth])
            if name not in children:
                raise ConversionError(f"{describe(path)}: the file holds no weights of it")
            group, spec = children[name], model.by_name[name]
            model = spec.model or model
        part = group.child(inner) if inner else group
        return self._variables(part) if isinstance(part, Group) else None, spec

    @staticmethod
    def _variables(group: Group) -> Group | None:
        item = group.child("vars")
        return item if isinstance(item, Group) else None

    def _children(self, group: Group, model: ModelSpec, path: Path) -> dict[str, Group]:
        """The group of every layer of a model.

        Groups carry the class name and a running number, not the layer's name, which newer
        versions of Keras add as an attribute. Old versions count layers with weights twice, so only
        the order within a class is used.
        """
        if path in self._found:
            return self._found[path]
        groups: dict[str, list[tuple[int, Group]]] = {}
        names: dict[str, Group] = {}
        for container in self.CONTAINERS:
            items = group.child(container)
            if not isinstance(items, Group):
                continue
            for key in items.names():
                child = items.child(key)
                variables = self._variables(child) if isinstance(child, Group) else None
                if not isinstance(child, Group) or variables is None:
                    continue
                match = re.fullmatch(r"(.+?)(?:_(\d+))?", key)
                if match:
                    base = match[1].replace("_", "").lower()
                    groups.setdefault(base, []).append((int(match[2] or 0), child))
                if "name" in variables.attributes:
                    names[str(variables.attributes["name"])] = child
            if groups:
                break
        self._found[path] = self._assign(model, groups, names, path)
        return self._found[path]

    @staticmethod
    def _assign(
        model: ModelSpec,
        groups: dict[str, list[tuple[int, Group]]],
        names: dict[str, Group],
        path: Path,
    ) -> dict[str, Group]:
        classes: dict[str, list[LayerSpec]] = {}
        for layer in model.layers:
            if not layer.is_operation:
                classes.setdefault(layer.class_name.lower(), []).append(layer)
        result = {}
        for key, layers in classes.items():
            if all(layer.name in names for layer in layers):
                result.update({layer.name: names[layer.name] for layer in layers})
                continue
            found = [child for _, child in sorted(groups.get(key, []), key=lambda item: item[0])]
            needed = [layer for layer in layers if leaf_weights(layer, (layer.name,))]
            if len(found) != len(layers) and len(found) != len(needed):
                if needed:
                    raise ConversionError(
                        f"{describe((*path, needed[0].name))}: the file holds weights of "
                        f"{len(found)} {needed[0].class_name} layers, the model has {len(layers)}"
                    )
                continue
            chosen = layers if len(found) == len(layers) else needed
            result.update({la.name: child for la, child in zip(chosen, found, strict=True)})
        return result
