"""The ``.pbit`` file: record layouts, reader and writer."""
