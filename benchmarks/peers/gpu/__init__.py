"""Whole networks beside other engines on a GPU."""
