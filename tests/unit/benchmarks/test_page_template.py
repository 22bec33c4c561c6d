"""Templates of result pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page_template import filled

TEMPLATE = """# {title}

About {count:,} rows.

{table}

#### More

Of them:

{more}

Others:

{others}
"""


@pytest.mark.parametrize(
    ("more", "others", "expected"),
    [
        ("| a |", "| b |", ["#### More", "Of them:", "| a |", "Others:", "| b |"]),
        ("", "| b |", ["#### More", "Others:", "| b |"]),
        ("", "", []),
    ],
)
def test_blocks_without_content_are_left_out_with_their_prose(
    tmp_path: Path, more: str, others: str, expected: list[str]
) -> None:
    template = tmp_path / "page.md"
    template.write_text(TEMPLATE)
    values = {"title": "T", "count": 1234, "table": "| {x} |", "more": more, "others": others}
    head = ["# T", "About 1,234 rows.", "| {x} |"]
    assert filled(template, values).split("\n\n") == head + expected


def test_the_first_heading_stays(tmp_path: Path) -> None:
    template = tmp_path / "page.md"
    template.write_text("# T\n\nProse:\n\n{table}\n")
    assert filled(template, {"table": ""}) == "# T"
