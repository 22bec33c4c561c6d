"""Networks: definitions with seeded weights, and trained ones with their recipes."""
