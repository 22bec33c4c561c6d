"""Accuracy of the trained classifiers, for the results page."""
