"""Whole networks compared with other engines."""
