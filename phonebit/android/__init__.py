"""Phones on a cable: native tools and networks go there by `adb`, measurements come back."""
