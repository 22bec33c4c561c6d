"""What to do instead of an operator that has no rule and no definition by others."""

from __future__ import annotations

from typing import Final

_ADVICE: Final = {
    "it asks which numbers are none: keep them from arising, as by y / x.clamp(min=eps), and leave "
    "it out": ("isnan", "isinf", "isfinite", "nan_to_num", "nanmean", "nansum"),
    "it orders values: do that outside, with the network's output": (
        *("sort", "argsort", "topk", "median", "kthvalue", "mode", "cummax", "cummin"),
        *("unique", "_unique2", "nonzero", "masked_select", "bincount", "histc"),
    ),
    "it is computed of constants only: give what it makes of positions as a buffer": (
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinc"),
        *("lgamma", "digamma", "erfinv"),
    ),
    "it reads or writes single elements: write slices, index_select, index_add or where": (
        *("gather", "take", "take_along_dim", "scatter", "scatter_add", "scatter_reduce"),
        *("index_copy", "index_fill", "index_reduce"),
    ),
    "it reads pixels at positions that the network computes: write one at fixed positions as the "
    "resize, crop, flip or roll that it is": ("grid_sampler", "grid_sampler_2d"),
}


def advice(operator: str) -> str:
    """What an error says of an operator, after "is not supported"; "" if nothing is known."""
    texts = [text for text, operators in _ADVICE.items() if operator in operators]
    return f"; {texts[0]}" if texts else ""
