"""A kernel with values of its parameters, as tuning tables write it."""

from __future__ import annotations

from dataclasses import dataclass

from phonebit.bnn_kernels.sources import kernel_paths, tunables
from phonebit.errors import InputError


@dataclass(frozen=True)
class KernelChoice:
    """A choice; equal ones are equal whether or not defaults are written out.

    Attributes:
        kernel: its name.
        parameters: name and value of every tunable, in a fixed order.
    """

    kernel: str
    parameters: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> KernelChoice:
        """Read ``bconv2d_tiled TILE_PIXELS=2 TILE_FILTERS=8``.

        Args:
            text: parameters that it does not name have their defaults.

        Returns:
            The choice.

        Raises:
            InputError: if it has another form.
        """
        kernel, *fields = text.split() or [""]
        values = _defaults(kernel)
        for part in fields:
            name, _, value = part.partition("=")
            try:
                values[name] = int(value)
            except ValueError:
                raise InputError(
                    "not a kernel choice",
                    where=repr(text),
                    expected="a kernel's name and PARAMETER=number fields",
                    got=repr(part),
                ) from None
        if not kernel:
            raise InputError("not a kernel choice", where=repr(text), expected="a kernel's name")
        return cls(kernel, tuple(sorted(values.items())))

    @property
    def defaults(self) -> int:
        """How many parameters have their defaults."""
        standard = _defaults(self.kernel)
        return sum(standard.get(name) == value for name, value in self.parameters)

    def differs_only_in(self, name: str, other: KernelChoice) -> bool:
        """Whether it is the other one, but for (at most) the value of one parameter."""
        mine, theirs = dict(self.parameters), dict(other.parameters)
        mine.pop(name, None)
        theirs.pop(name, None)
        return self.kernel == other.kernel and mine == theirs


def _defaults(kernel: str) -> dict[str, int]:
    """Default values of a kernel's tunables; none for a kernel that has no file of its own."""
    if kernel not in kernel_paths():
        return {}
    return {tunable.name: tunable.default for tunable in tunables(kernel)}
