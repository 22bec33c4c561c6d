"""Tables and templates of result pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.markdown import (
    WIDTH,
    filled,
    markdown_table,
    wrapped,
)

TEMPLATE = """# {title}

About {count:,} rows.

{table}

#### More

Of them:

{more}

Others:

{others}
"""


def test_words_stand_left_and_numbers_right() -> None:
    rows = [("alexnet", "binary", "1.5"), ("vgg16", "float", "20")]
    assert markdown_table(("network", "form", "ms"), rows, texts=2).splitlines() == [
        "| network | form | ms |",
        "| --- | --- | ---: |",
        "| alexnet | binary | 1.5 |",
        "| vgg16 | float | 20 |",
    ]


def test_bars_in_cells_do_not_end_them() -> None:
    assert markdown_table(("a|b",), [("c | d",)]).splitlines()[::2] == ["| a\\|b |", "| c \\| d |"]


def test_a_row_of_another_length_is_shown() -> None:
    with pytest.raises(ValueError, match=r"row 2 has 1 cells, expected 2: \('vgg16',\)"):
        markdown_table(("network", "ms"), [("alexnet", "1"), ("vgg16",)])


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


def test_prose_is_wrapped_and_code_in_it_is_not_broken() -> None:
    prose = "word " * 22 + "`code of several words` and " + "word " * 30
    lines = wrapped(f"# Title\n\n{prose}\n\n- one\n- {prose}\n\n| {prose} |").split("\n")
    assert lines[:2] == ["# Title", ""] and lines[-1] == f"| {prose} |"
    assert all(len(line) <= WIDTH for line in lines[:-1])
    assert lines[3].startswith("`code of several words` and word")
    item = lines[lines.index("- one") + 1 : -2]
    assert item[0].startswith("- word") and all(line.startswith("  ") for line in item[1:])
    assert " ".join(" ".join(item).split()) == f"- {prose}".strip()


def test_short_lines_stay() -> None:
    assert wrapped("one\ntwo\n\n- three\n") == "one\ntwo\n\n- three\n"
