"""Modelled times of a network on phones that are not at hand."""
