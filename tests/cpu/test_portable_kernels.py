"""cpu_backend/portable is one text for all processors: what differs is in cpu_backend/simd."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "cpu_backend"
PORTABLE = sorted(BACKEND.glob("portable/*"))
CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|else|endif)\b", re.MULTILINE)
INTRINSIC = re.compile(
    r"\b_mm\d*_\w+|\b__m\d+\w*|\b__builtin_(?:ia32|neon|aarch64|wasm)_\w+|\basm\b"
    r"|\bv[a-z]\w*_[usf](?:8|16|32|64)\b|\b(?:u?int|float)\d+x\d+\w*_t\b"
    r"|\b__(?:x86_64|i386|SSE|AVX|aarch64|arm|ARM|riscv|wasm)\w*|\b(?:immintrin|arm_neon)\.h"
)


@pytest.mark.parametrize("path", PORTABLE, ids=lambda path: path.name)
def test_has_no_branch_and_no_intrinsic_of_an_architecture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert CONDITION.findall(text) == []
    assert INTRINSIC.findall(text) == []


def test_both_patterns_find_what_they_are_for() -> None:
    wrapper = (BACKEND / "simd" / "avx512.h").read_text(encoding="utf-8")
    neon = (BACKEND / "simd" / "neon.h").read_text(encoding="utf-8")
    assert len(PORTABLE) > 25
    assert {"_mm512_fmadd_ps", "__m512i"} <= set(INTRINSIC.findall(wrapper))
    assert {"vfmaq_f32", "float32x4_t"} <= set(INTRINSIC.findall(neon))
    assert len(CONDITION.findall(neon)) == 6
