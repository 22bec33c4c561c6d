"""Fashion-MNIST with TensorFlow and Larq: the network of ``phonebit demo``."""
