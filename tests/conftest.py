"""Shared by all tests: hypothesis draws the same examples every time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("phonebit", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("phonebit")
