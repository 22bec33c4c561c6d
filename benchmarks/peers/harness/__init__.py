"""The comparison with peers: what runs, in which turns, and what the numbers say."""
