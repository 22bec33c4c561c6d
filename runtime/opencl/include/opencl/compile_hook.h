// Compiling kernels takes seconds: whoever waits may be told.
#pragma once

namespace phonebit::engine::opencl {

/// `hook` is called before each program that the cache does not have is compiled, on the thread that loads.
/// Null: nothing is called. It counts for all networks of the process.
void set_compile_hook(void (*hook)());

}  // namespace phonebit::engine::opencl
