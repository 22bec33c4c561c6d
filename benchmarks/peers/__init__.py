"""Whole networks beside other engines."""
