"""Plans: what they are, how files keep them, and an independent check."""
