"""Whole networks compared with other engines on a GPU."""
