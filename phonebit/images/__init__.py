"""Images on their way into a network: preprocessing, its settings, class names."""
