// Pairs of convolutions that a CPU may compute as one.
#pragma once

#include <vector>

#include "loader/model.h"

namespace phonebit::engine::analysis {

/// For each op, whether it is the second of a pair: a binary convolution that adds twice its sums to those of the op
/// before, whose filters and geometry it shares, and whose value nobody else reads. Planes of levels are summed up so:
///   a = conv(x0, w) u + t;   conv(x1, w) 2 u + a = (conv(x0, w) + 2 conv(x1, w)) u + t
/// Either t = 0 and u = 1, or u is a power of two and t the value of a pair. All of these numbers are integers below
/// 2^24, so that both sides are the same in float32.
std::vector<bool> plane_pairs(const loader::Model& model);

}  // namespace phonebit::engine::analysis
