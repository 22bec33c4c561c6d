"""OpenCL C kernels of PhoneBit: data for the runtime, readable from Python. See README.md."""
