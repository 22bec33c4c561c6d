"""Measuring parts of layers: here, and on devices without Python."""
