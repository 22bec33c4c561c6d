"""Energy per frame: the PhoneBit paper's table IV."""
