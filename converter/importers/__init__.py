"""Importers: one a training framework; each turns a trained model into a source graph."""
