// Checks of the values that go into a network.
#pragma once

#include <cstddef>

#include "loader/model.h"
#include "threads/thread_pool.h"
#include "types/tensor.h"

namespace phonebit::engine {

/// Index of the first NaN or infinity in [begin, end), or `end`.
size_t find_not_finite(const float* values, size_t begin, size_t end);

/// Throws Error(input) naming the tensor, and where element `at` of a batch is.
[[noreturn]] void fail_for_value(const loader::Tensor& tensor, const float* values, size_t at);

/// Throws as fail_for_value for the first NaN or infinity in a network input; only floats have any.
void check_finite(const loader::Tensor& tensor, const InputBuffer& input, threads::ThreadPool& pool);

}  // namespace phonebit::engine
