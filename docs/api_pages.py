"""Writes the pages of docs/api that show Python's docstrings, to be read without the site.

python docs/api_pages.py          # after a change of a public docstring or signature
python docs/api_pages.py --check  # exit code 1 where a page is older than its docstrings
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "api"
WIDTH: Final = 120
NOTE: Final = "Written from the docstrings by `python docs/api_pages.py`."
SECTION: Final = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):\n", re.MULTILINE)
ENTRY: Final = re.compile(r"^    (?=\S)", re.MULTILINE)

PAGES: Final = {
    "planner.md": (
        "Planner API",
        "Plans for [co-execution](../coexecution.md): making one, and what a plan is.",
        (
            "phonebit.plan", "phonebit.planner.planning_files.PlanReport", "phonebit.collect",
            "phonebit.tune", "phonebit.planner.ExecutionPlan", "phonebit.planner.PlannedPart",
            "phonebit.planner.OutputPart", "phonebit.planner.Processor",
            "phonebit.planner.stored_plans", "phonebit.planner.with_plan",
            "phonebit.planner.verify_plan", "phonebit.planner.layer_outputs",
        ),
    ),
    "verification.md": (
        "Verification API",
        "Comparing a file with its source: [verifying](../verify.md) explains what is compared.",
        (
            "phonebit.verify", "phonebit.verification.VerificationReport",
            "phonebit.verification.DeviceCheck", "phonebit.verification.LayerCheck",
            "phonebit.verification.EndToEndCheck", "phonebit.verification.open_source",
        ),
    ),
    "energy.md": (
        "Energy API",
        "Energy per image: [energy](../energy.md) has the sources and what they measure.",
        (
            "phonebit.energy.measure", "phonebit.energy.EnergyMeter",
            "phonebit.energy.EnergyResult", "phonebit.energy.discover",
            "phonebit.energy.choose_source", "phonebit.energy.EnergySource",
            "phonebit.energy.Rail", "phonebit.energy.Finding", "phonebit.energy.energy_lines",
            "phonebit.energy.EnergyError", "phonebit.energy.NoSourceError",
        ),
    ),
}  # fmt: skip
"""Title, introduction and objects of each page, in order."""


def page(title: str, introduction: str, names: tuple[str, ...]) -> str:
    """The text of a page."""
    parts = [f"# {title}", filled(f"{introduction} {NOTE}")]
    for name in names:
        module, _, attribute = name.rpartition(".")
        parts += described(getattr(importlib.import_module(module), attribute), name)
    return "\n\n".join(parts) + "\n"


def described(thing: Any, name: str) -> Iterator[str]:
    """Heading, signature, docstring and public methods of a class or function."""
    yield f"## {name}"
    yield f"```python\n{signature(thing, name.rpartition('.')[2])}\n```"
    yield from paragraphs(inspect.getdoc(thing) or "")
    if not inspect.isclass(thing):
        return
    for member, value in vars(thing).items():
        is_property = isinstance(value, property)
        if member.startswith("_") or not (is_property or inspect.isroutine(value)):
            continue
        yield f"### {member}"
        if not is_property:
            yield f"```python\n{signature(getattr(thing, member), member)}\n```"
        yield from paragraphs(inspect.getdoc(value) or "")


def signature(thing: Any, name: str) -> str:
    """A call as it would be declared; on several lines where it is long."""
    if inspect.isclass(thing) and not has_parameters(thing):
        return f"class {name}"
    full = inspect.signature(thing)
    parameters = [each for each in full.parameters.values() if each.name != "self"]
    names = [shown(parameter) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        names.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = "" if inspect.isclass(thing) else f" -> {plain(full.return_annotation)}"
    head = "class " if inspect.isclass(thing) else "def "
    line = f"{head}{name}({', '.join(names)}){result}"
    listed = "".join(f"    {each},\n" for each in names)
    return line if len(line) <= 88 else f"{head}{name}(\n{listed}){result}"


def has_parameters(thing: type) -> bool:
    """Whether a class is created by calls that its reader would write."""
    return not (issubclass(thing, Exception) or hasattr(thing, "__members__"))


def shown(parameter: inspect.Parameter) -> str:
    """A parameter with its type and default; what has no readable default has dots."""
    text = f"{parameter.name}: {plain(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    default = repr(parameter.default).replace("'", '"')
    return f"{text} = {'...' if default.startswith('<') else default}"


def plain(annotation: Any) -> str:
    """An annotation as it stands in the source."""
    forward = getattr(annotation, "__forward_arg__", None)
    if forward or isinstance(annotation, str):
        return str(forward or annotation)
    return "None" if annotation is None else getattr(annotation, "__name__", str(annotation))


def paragraphs(docstring: str) -> Iterator[str]:
    """A Google docstring as Markdown: text, then a list for each section."""
    text, *sections = SECTION.split(docstring)
    yield from filter(None, map(filled, text.replace("``", "`").strip().split("\n\n")))
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        yield f"**{title}**"
        entries = [body] if title in ("Returns", "Yields") else ENTRY.split(body.rstrip())[1:]
        yield "\n".join(filled(item(entry, title), "- ", "  ") for entry in entries)


def item(entry: str, title: str) -> str:
    """An entry of a section, its name as code."""
    entry = entry.replace("``", "`")
    name, colon, text = entry.partition(":")
    return f"`{name}`: {text}" if colon and title not in ("Returns", "Yields") else entry


def filled(text: str, first: str = "", rest: str = "") -> str:
    """Text in lines of the page's width."""
    return textwrap.fill(
        " ".join(text.split()), WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def main() -> int:
    """Writes the pages, or says which are out of date."""
    stale = []
    for name, parts in PAGES.items():
        path, text = FOLDER / name, page(*parts)
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"docs/api: {', '.join(stale)}: run python docs/api_pages.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
