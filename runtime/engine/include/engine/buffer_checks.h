// Checks of what a caller passes to Network.
#pragma once

#include <vector>

#include "types/tensor.h"

namespace phonebit::engine {

/// Every buffer holds exactly `batch` images of its tensor, is not null and is aligned. `role` is "input",
/// "output", ...; `tensors[which[i]]` belongs to buffer i. Throws Error(input).
template <class Buffer>
void check_buffers(const char* role, const std::vector<Buffer>& buffers,
                   const std::vector<TensorInfo>& tensors, const std::vector<int>& which, int batch);

/// No output shares memory with another output or with an input; inputs may with each other. Throws
/// Error(input).
void check_disjoint(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs);

}  // namespace phonebit::engine
