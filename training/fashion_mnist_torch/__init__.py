"""Fashion-MNIST with PyTorch: three classifiers, binary and as float twins."""
