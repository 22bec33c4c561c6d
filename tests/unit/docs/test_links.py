"""Links between pages lead to files and headings, also where the site does not look: on GitHub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("bnn_kernels", "docs", "examples", "tests", "training")
PAGES = sorted([
    *ROOT.glob("*.md"),
    *(ROOT / "benchmarks").rglob("README.md"),  # the others are parts of docs/results
    *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md")),
])  # fmt: skip
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Headings as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"\]\([^)]*\)|[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s", "-", each) for each in plain}


def broken(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"https?:|mailto:|\{", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A & B\n\n[x](#a--b) [y](#c) [z](none.md) [w](https://w.org)\n")
    assert broken(page) == ["#c", "none.md"]
