"""Imports TensorFlow Lite networks, those of Larq Compute Engine's converter among them."""
