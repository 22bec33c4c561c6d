"""Source graphs in the formats of other engines."""
