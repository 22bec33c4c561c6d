"""What kernels become on mobile GPUs, by Mesa's compilers."""
