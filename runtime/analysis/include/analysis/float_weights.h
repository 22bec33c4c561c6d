// Weights of a CONV2D over float32 values, however the file stores them.
#pragma once

#include <cstddef>

#include "loader/model.h"

namespace phonebit::engine::analysis {

/// Number of weights of a convolution.
size_t weight_count(const loader::Model& model, const loader::Op& op);

/// Writes them as float32, OHWI: F32 as they are, F16 and I8 exactly, bits as +1 and -1.
void write_float_weights(const loader::Model& model, const loader::Op& op, float* values);

}  // namespace phonebit::engine::analysis
