"""Tables on predictors: Fine-Grained's table 1, CoDL's table 3; Markdown from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.markdown_table import markdown_table

Record = dict[str, Any]
TITLES: Final = {
    "ulayer": "µLayer",
    "codl": "CoDL",
    "finegrained": "Fine-Grained",
    "finegrained_plain": "Fine-Grained, no augmentation",
}


COLUMNS: Final = TITLES | {"measured_again": "measured again"}


def errors_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 1: mean absolute percentage errors on layers held out.

    The last column has CoDL's measure, the share of predictions within 10 %.
    """
    within = f"{TITLES['finegrained']} within ±10 %"
    head = ("testbed", "processor", "layers", "parts", *COLUMNS.values(), within)
    rows = []
    for name, results in testbeds.items():
        for group in results["predictors"]["groups"]:
            errors = group["errors"]
            cells = [_percent(errors.get(way), "mape") for way in COLUMNS]
            cells.append(_percent(errors.get("finegrained"), "within_10"))
            rows.append((name, group["processor"], group["layers"], str(group["parts"]), *cells))
    return markdown_table(head, rows, texts=3)


def accuracy_table(testbeds: Mapping[str, Record]) -> str:
    """CoDL, table 3: share of predictions within 10 %, and what a predictor's parameters take.

    Of what the papers' tables are about, linear and convolutional layers, and of all layers.
    """
    both = "linear and convolutional"
    head = (
        "testbed",
        "predictor",
        "training partitions",
        f"{both}: MAPE",
        "within ±10 %",
        "all: MAPE",
        "within ±10 %",
        "bytes",
    )
    rows = []
    for name, results in testbeds.items():
        for way, title in TITLES.items():
            of = results["predictors"]["all"].get(way)
            if of is not None:
                both = _over_convolutions(results["predictors"]["groups"], way)
                cells = [_percent(of, what) for of in (both, of) for what in ("mape", "within_10")]
                learnt_from = f"{results['predictors']['learnt_from']:,}"
                rows.append((name, title, learnt_from, *cells, f"{of['bytes']:,}"))
    return markdown_table(head, rows, texts=2)


def _over_convolutions(groups: Sequence[Record], way: str) -> dict[str, float]:
    """A predictor's errors over both kinds of convolutions and both processors."""
    own = [group for group in groups if group["layers"] in ("linear", "convolutional")]
    parts = sum(group["parts"] for group in own)
    return {
        what: sum(group["errors"][way][what] * group["parts"] for group in own) / parts
        for what in ("mape", "within_10")
    }


def _percent(of: Mapping[str, float] | None, what: str) -> str:
    return "-" if of is None else f"{of[what]:.1%}"
