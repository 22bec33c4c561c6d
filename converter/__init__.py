"""From a trained checkpoint to a ``.pbit`` file: importers, IR, passes, writer."""
