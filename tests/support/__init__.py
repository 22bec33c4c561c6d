"""Helpers that tests of several folders share, imported as ``support.NAME``."""
