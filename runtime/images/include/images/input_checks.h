// Whether an image can become an input at all.
#pragma once

#include <cstddef>

#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine::images {

/// Checks a rule, the input it is for and that input's buffer. Throws Error(input).
void check_input(const Preprocessing& rule, const TensorInfo& input, const void* data, size_t bytes);

}  // namespace phonebit::engine::images
