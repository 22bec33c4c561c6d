"""The benchmark beside peers: what runs, in which turns, and what the numbers say."""
