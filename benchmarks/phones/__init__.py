"""Whole networks on phones that are not at hand: executed instructions and modelled cycles."""
