"""Options that several commands have: dataclasses, whose fields become a command's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_args, get_type_hints


class Without:
    """Leaves fields of a group at their defaults: ``Annotated[Group, Without("name")]``."""

    def __init__(self, *names: str) -> None:
        """Names of the fields."""
        self.names = names


def with_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of each parameter that is a dataclass in that parameter's place.

    Args:
        command: A function with annotations as Typer reads them, but for such parameters. They
            have no default, and so come after ``*``; fields have one.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    signature = inspect.signature(command)
    for parameter in signature.parameters.values():
        group, *marks = get_args(hints[parameter.name]) or [hints[parameter.name]]
        if not is_dataclass(group) or not isinstance(group, type):
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        left_out = {name for mark in marks if isinstance(mark, Without) for name in mark.names}
        taken = [field for field in fields(group) if field.name not in left_out]
        types = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, parameter.kind, default=field.default, annotation=types[field.name]
            )
            for field in taken
        ]
        groups[parameter.name] = group, [field.name for field in taken]

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, (group, names) in groups.items():
            given[name] = group(**{each: given.pop(each) for each in names})
        return command(**given)

    expanded = signature.replace(parameters=parameters)
    vars(run)["__signature__"] = expanded
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
