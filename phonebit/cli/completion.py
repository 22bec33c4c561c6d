"""``phonebit completion``: scripts by which shells complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer.completion import (  # type: ignore[attr-defined]  # both are Typer's own, re-exported
    completion_init,
    get_completion_script,
)

completion_init()  # else Typer does not answer what the scripts ask


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish", "powershell"], typer.Argument(metavar="SHELL")],
) -> None:
    """Print a completion script for bash, zsh, fish or powershell.

    For bash: phonebit completion bash > ~/.local/share/bash-completion/completions/phonebit
    """
    variable = "_PHONEBIT_COMPLETE"
    print(get_completion_script(prog_name="phonebit", complete_var=variable, shell=shell))
