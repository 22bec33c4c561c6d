"""Words that the house does not use, and what to write: the glossary's other half."""

from __future__ import annotations

import re
from functools import cache

UNITS = (
    "batch|block|box|case|channel|class|column|core|cycle|device|dimension|element|entry|file|filter|frame|group|image|"
    "inference|input|instruction|item|joule|kernel|lane|layer|line|network|node|operand|operator|output|pass|pixel|"
    "plane|point|position|processor|register|round|row|run|second|side|stage|step|sum|tap|tensor|thread|tile|turn|"
    "value|vector|window|word|work-group|work-item"
)
AMOUNTS = (
    "bits?|boxes|bytes?|channels|cycles|elements|entries|filters|frames|garments|images|inputs|joules|kernels|lanes|"
    "lines|multiply-accumulates|(milli|micro)?seconds|ms|number|one|operations?|operands|outputs|"
    "passes|pixels|planes|positions|records?|rows|scales?|scenes|slots|steps|sums?|tests|texels|threads|thresholds|"
    "time|us|values|vectors?|windows|words?|work-items"
)

INSTEAD = {
    r"\bpictures?\b": "image",
    r"\breal (layers?|ends|weights|tensors?|values?)\b": "full-precision layer, float value",
    r"\bplanes? of bits\b": "thermometer encoding, bit-plane",
    r"\bhand(s|ed|ing)?[- ]?overs?\b|\bmeetings?\b": "synchronization, data transfer",
    r"\bcanar(y|ies)\b": "noise probe",
    r"\bpart(ed)\b|\bthey part\b": "mismatch",
    r"\bforward pass(es)?\b|\bfirst passes\b": "inference",
    r"\btwo slopes\b": "two-sided PReLU",
    r"\bon trial\b|\bpatience\b": "auto-selection, spin time",
    r"\bfaces\b": "bindings",
    r"\bwork orders?\b": "measurement job",
    r"\baffair\b|\bwhoever\b|\bhistory\b": "plain words",
    r"\bformerly\b|\bpreviously\b|\bno longer\b(?! than)|\bas before\b": "no history",
    rf"\b(?-i:{AMOUNTS}) an? ({UNITS})\b": "per",
}
"""Patterns that documents, help texts, docstrings and comments do not have, and what to write."""

IN_DOCUMENTS = INSTEAD | {
    r"\bso far\b": "no history",
    r"\bdyadic\b": "exactly representable",
}
"""In documents, help texts and public docstrings."""

IN_CODE = INSTEAD | {
    r"\bbehind\b": "after",
    r"\bbeside\b": "next to, besides, and",
    r"\bverdicts?\b": "result",
    r"\brivals?\b|\bduels?\b|\bcontestants?\b|\bchampions?\b": "candidate, comparison",
    r"\btrials?\b": "auto-selection, attempt",
    r"\bwish(es)?\b": "request",
    r"\bserv(es|ed|ing)\b|\b(can|may|must|not|to|all|kernels?|that) serve\b": "support, run",
    r"(?<!\bat )\bleast\b(?![- ](significant|squares|recently))": "minimum",
}
"""In comments and docstrings, those of private functions among them."""

OUTSIDE_THE_CONVERTER = {
    r"\b(an?|the|per|each|every|next|last|whole|such|this|later) pass(es)?\b(?! over)": "inference",
}
"""As well, where no pass of the converter is meant."""

IN_NAMES = {
    r"\bpictures?\b": "image",
    r"\bcanar(y|ies)\b": "noise probe",
    r"\bverdicts?\b": "result",
    r"\brivals?\b|\bduels?\b|\bcontestants?\b|\bchampions?\b": "candidate, comparison",
    r"\btrials?\b|\bpatience\b": "auto-selection, attempt, spin time",
    r"\bhand(ed|s)? ?overs?\b|\bmeetings?\b": "synchronization, transfer",
    r"\bwish(es)?\b": "request",
    r"\bbehind\b": "after",
    r"\bbeside\b": "next to, with",
    r"\bserv(es|ed|ing)\b|\bcan serve\b": "support, run, use",
    r"^(k )?least\b(?! squares)": "min",
    r"^(k )?most\b(?! (common|specific|balanced))": "max",
    r"\bforward pass(es)?\b|\bfirst passes\b": "inference",
    r"\bfaces\b": "bindings",
    r"\bwork orders?\b": "measurement job",
}
"""In the names of code and of files; their words have blanks between them."""

PUBLIC = re.compile(
    r"PHONEBIT_PICTURE_\w+|phonebit_picture(_format)?|phonebit_network_prepare_picture|Picture(Format)?"
    r"|prepare_picture|phonebit_options_set_trial|is_on_trial|trial_?|canary_(us|ms|ratio)|verdict|handovers?|least_us"
)
"""Names of version 1's interfaces and keys of its files, which stay."""


def complaints(text: str, patterns: dict[str, str]) -> list[str]:
    """What a text says that it should not, and the better word."""
    if not _any_of(tuple(patterns)).search(text):
        return []
    return [
        f"{match[0]!r}: write {better}"
        for pattern, better in patterns.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@cache
def complaints_of_name(name: str) -> tuple[str, ...]:
    """What a name of code or of a file says that it should not."""
    return () if PUBLIC.fullmatch(name) else tuple(complaints(words_of(name), IN_NAMES))


def prose_of(comment: str) -> str:
    """A comment without code, options and the names of arguments."""
    return re.sub(r"``.*?``|`[^`]*`|(?<!\w)--[\w-]+|\w+::\w+|^\s*\w+:(?!\w)|\w+=\S+", "", comment)


def words_of(name: str) -> str:
    """A name's words, in lower case, with blanks between them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+", " ", name).strip().lower()
