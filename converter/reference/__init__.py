"""NumPy arithmetic of every operator: the definition that all other implementations are held to."""
