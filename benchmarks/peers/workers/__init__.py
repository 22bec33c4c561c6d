"""Processes that run one engine each, in its own environment."""
