"""Sizes of networks, and layers beside other engines: the PhoneBit paper's table II, figure 5."""
