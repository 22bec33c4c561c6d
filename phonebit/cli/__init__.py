"""The command line: one command a file, ``main.py`` joins them."""
