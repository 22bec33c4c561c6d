"""Imports ONNX and QONNX networks, node by node."""
