"""Classifiers of Fashion-MNIST, binary and float, trained in PyTorch; README.md says how."""
