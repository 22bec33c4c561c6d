// Structures of the C interface to and from the engine's, where several files need them.
#pragma once

#include "engine/network.h"
#include "phonebit/phonebit_c.h"

namespace phonebit::engine::c_api {

/// Its struct_size is for give() to set. The name is the tensor's own.
phonebit_tensor_info tensor_description(const TensorInfo& tensor);

inline OutputPart part_of(const phonebit_part& part) {
  return {part.row_begin, part.row_end, part.channel_begin, part.channel_end};
}

/// A caller's rule for input number `input`. Throws Error(input).
Preprocessing preprocessing_of(const phonebit_preprocessing& rule, int32_t input);

}  // namespace phonebit::engine::c_api
