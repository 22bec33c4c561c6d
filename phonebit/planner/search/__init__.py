"""From times of parts of layers to the plan that is fastest for the whole network."""
