"""Rewrites from source to engine operators: one pass a file, in the order of pipeline.py."""
