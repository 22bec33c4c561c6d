"""NumPy arithmetic that several operators share."""
