"""How long parts of layers take, learnt from measurements of a device: three published ways."""
