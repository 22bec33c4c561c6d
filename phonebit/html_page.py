"""Pages that need nothing else: one file, no script, no font, no network; light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from phonebit.display import escape_html
from phonebit.output_files import FileKind

HTML_FILE: Final = FileKind(
    "an HTML page", lambda head: head.lstrip().lower().startswith(b"<!doctype html")
)
COLOURS: Final = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #5b6470; --paper: #fff; --line: #d8dde3;
  --band: #f3f5f7; --good: #14733b; --mild: #8a5a00; --bad: #b3261e; --badband: #fdeceb;
  --bit: #0b6e99; --bitband: #e3f1f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ed; --soft: #9aa4b0; --paper: #14171b;
  --line: #343b44; --band: #1d2127; --good: #5fcf8d; --mild: #e0b050; --bad: #ff8a80;
  --badband: #3a1c1b; --bit: #6cc4e8; --bitband: #14303c; } }
"""
_PIECES: Final = re.compile(r"[^_./:]{1,24}[_./:]*|[_./:]+", re.DOTALL)
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; padding: 0 1rem; max-width: 75rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; } p { margin: .25rem 0; } a { color: inherit; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { background: var(--band); padding-top: .35rem; }
th:first-child, td:first-child { padding-left: .5rem; }
.number { text-align: right; }
.number, .verdict { white-space: nowrap; }
.soft { color: var(--soft); } .good { color: var(--good); } .mild { color: var(--mild); }
.bad { color: var(--bad); font-weight: 600; } code { font: 13px/1.4 ui-monospace, monospace; }
figure { display: inline-block; margin: .25rem 0; vertical-align: top; max-width: 100%; }
figcaption { color: var(--soft); font-size: .85rem; }
h1, p, .facts td { overflow-wrap: anywhere; }
.facts th { min-width: 6.5rem; }
@media (max-width: 48rem) { .data thead { display: none; } .data, .data tbody { display: block; }
  .data tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr));
    gap: 0 .7rem; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .data td { display: block; border: 0; padding: 0 !important; text-align: left; }
  .data td:empty { display: none; }
  .data td::before { content: attr(data-title) " "; color: var(--soft); } }
"""


def html_page(title: str, body: Iterable[str], style: str = "") -> str:
    """A whole document.

    Args:
        title: plain text.
        body: HTML, in which everything that came from files is escaped.
        style: rules of this page besides those of all.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_html(title)}</title>\n<style>{COLOURS}{_STYLE}{style}</style>\n</head>\n"
        "<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def figure(drawing: str, caption: str) -> str:
    """A drawing, of HTML, with what it shows below it."""
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"


def facts_table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and plain texts."""
    cells = "".join(
        f"<tr><th>{escape_html(name)}</th><td>{escape_html(text)}</td></tr>\n"
        for name, text in rows
    )
    return f'<table class="facts">\n{cells}</table>'


def environment_facts(environment: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Rows about a machine and PhoneBit (``devices.environment``)."""
    for name, value in environment.items():
        yield name, ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _breakable(text: str) -> str:
    """HTML whose lines may break within names, after a separator or many letters."""
    return "<wbr>".join(map(escape_html, _PIECES.findall(text)))


def data_table(titles: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]) -> str:
    """A table of plain texts; on a narrow screen a card per row.

    Args:
        titles: of the columns.
        rows: their cells.
        numbers: columns that are aligned to the right.
    """
    kinds = ["number" if i in numbers else "text" for i in range(len(titles))]
    names = list(map(escape_html, titles))
    shown = {"number": escape_html, "text": _breakable}
    head = "".join(f'<th class="{k}">{t}</th>' for k, t in zip(kinds, names, strict=True))

    def row(cells: Sequence[str]) -> str:
        return "".join(
            f'<td class="{kind}" data-title="{name}">{shown[kind](cell)}</td>'
            for kind, name, cell in zip(kinds, names, cells, strict=True)
        )

    body = "\n".join(f"<tr>{row(cells)}</tr>" for cells in rows)
    return f'<table class="data"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
