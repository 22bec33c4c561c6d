"""Imports Keras and Larq models, layer by layer, from files and live objects."""
