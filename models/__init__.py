"""Networks: definitions with seeded weights, and the trained one of ``phonebit demo``."""
