"""Sizes of networks, and layers next to other engines: the PhoneBit table II and figure 5."""
