// Geometry of an op, as every backend's kernels need it.
#pragma once

#include <vector>

#include "kernel_types.h"
#include "loader/model.h"

namespace phonebit::engine::analysis {

/// The geometry of a window op (or of the whole map, for ops without a window). Channels are those of the
/// whole layer, whatever its groups.
cpu::ConvShape conv_shape(const loader::Model& model, const loader::Op& op);

/// The op's integer thresholds, limited to what accumulators can tell apart: for |acc| <= bound, acc >= T is
/// the same as acc >= min(max(T, -bound), bound + 1), and kernels may then compute with T without overflow.
/// Empty without I32 thresholds.
std::vector<int32_t> integer_thresholds(const loader::Model& model, const loader::Op& op);

/// Whether one filter is for each channel of a CONV2D over float32 values.
bool is_float_depthwise(const loader::Model& model, const loader::Op& op);

}  // namespace phonebit::engine::analysis
