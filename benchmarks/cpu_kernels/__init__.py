"""CPU kernels alone: programs in C++, and what llvm-mca says of NEON's inner loops."""
