"""Which published networks convert, and how exactly."""
