"""OpenCL kernels alone, and the cost of a launch."""
