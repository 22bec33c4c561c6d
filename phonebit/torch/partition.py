"""Which parts of a module tree run on PhoneBit: the largest that convert with a binary layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from phonebit.acceleration_report import WITHOUT_BINARY, AcceleratedPart, AccelerationReport
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.errors import ConversionError
from phonebit.torch.calls import Calls
from phonebit.torch.conversion import converted


@dataclass
class Attempt:
    """What came of converting a module.

    Attributes:
        module: the ``NetworkModule``; None if the module does not convert.
        part: what the report says of it.
        reason: why it stays in PyTorch; "" if it has binary layers.
    """

    module: Any = None
    part: AcceleratedPart | None = None
    reason: str = ""


class Partition:
    """Walks a module tree from its root; a part that converts is not looked into.

    Args:
        calls: of the tree's modules, by ``id``.
        zeros: as in ``phonebit.convert``.

    Attributes:
        replaced: what stands for a module, by the module's ``id``.
        report: what runs where.
    """

    def __init__(self, calls: dict[int, Calls], zeros: Zeros) -> None:
        self._zeros: Zeros = zeros
        self._calls = calls
        self.replaced: dict[int, Any] = {}
        self.report = AccelerationReport("PyTorch")

    def walk(self, name: str, module: Any) -> None:
        """Looks for the largest parts of one module."""
        self._settle(name, module, self._attempt(name, module))

    def _settle(self, name: str, module: Any, attempt: Attempt) -> None:
        if not attempt.reason:
            self._replace([module], attempt)
        elif attempt.module is not None or not any(module.children()):
            self.report.rest[name] = attempt.reason
        else:
            if id(module) in self._calls:
                self.report.rest[name] = attempt.reason
            self._walk_children(name, module)

    def _walk_children(self, name: str, module: Any) -> None:
        children = [
            (f"{name}.{key}".lstrip("."), child)
            for key, child in module.named_children()
            if id(child) not in self.replaced
        ]
        if not self._is_chain(module):
            for child_name, child in children:
                self.walk(child_name, child)
            return
        run: list[tuple[str, Any, Attempt]] = []
        for child_name, child in children:
            attempt = self._attempt(child_name, child)
            if attempt.module is None or self._calls[id(child)].count > 1:
                self._settle_run(run)
                run = []
                self._settle(child_name, child, attempt)
            else:
                run.append((child_name, child, attempt))
        self._settle_run(run)

    def _settle_run(self, run: Sequence[tuple[str, Any, Attempt]]) -> None:
        """Neighbours that convert alone, as one network if they convert together, too."""
        if len(run) > 1:
            name = f"{run[0][0]} to {run[-1][0]}"
            modules = [module for _, module, _ in run]
            example = self._calls[id(modules[0])].example
            together = _attempt(name, torch.nn.Sequential(*modules), example, self._zeros)
            if not together.reason:
                self._replace(modules, together)
                return
        for name, module, attempt in run:
            self._settle(name, module, attempt)

    def _is_chain(self, module: Any) -> bool:
        """Whether it calls its children one after the other, and nothing else."""
        calls = self._calls.get(id(module))
        plain = type(module).forward is torch.nn.Sequential.forward
        return plain and calls is not None and calls.count == 1

    def _replace(self, modules: Sequence[Any], attempt: Attempt) -> None:
        first, *others = modules
        self.replaced[id(first)] = attempt.module
        self.replaced.update((id(other), torch.nn.Identity()) for other in others)
        assert attempt.part is not None
        self.report.parts.append(attempt.part)

    def _attempt(self, name: str, module: Any) -> Attempt:
        calls = self._calls.get(id(module))
        if calls is None:
            return Attempt(reason="is not called itself")
        if calls.example is None:
            return Attempt(reason="is called with other things than tensors of one shape")
        return _attempt(name, module, calls.example, self._zeros)


def _attempt(name: str, module: Any, example: tuple[Any, ...] | None, zeros: Zeros) -> Attempt:
    assert example is not None
    try:
        part, text = converted(name, module, example, zeros)
    except ConversionError as error:
        return Attempt(reason="; ".join(error.problems))
    return Attempt(part, text, "" if text.binary_layers else WITHOUT_BINARY)
