"""Precision of the trained detector, for the results page."""
