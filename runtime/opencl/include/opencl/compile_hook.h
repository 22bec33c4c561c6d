// Self-tests compile kernels, which takes seconds: whoever waits may be told.
#pragma once

namespace phonebit::engine::opencl {

/// `hook` is called before each problem of a self-test without a kept result, on the thread that loads. Null:
/// nothing is called. It counts for all networks of the process.
void set_self_test_hook(void (*hook)());

}  // namespace phonebit::engine::opencl
