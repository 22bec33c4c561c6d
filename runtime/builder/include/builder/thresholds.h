// Signs as comparisons: the number at which a chain of float32 steps changes its sign.
//
// The textbook form (PhoneBit, section V-A) solves gamma * (x - mean) / sigma + beta >= 0 for x and rounds,
// which is wrong wherever float32 arithmetic decides differently next to the solution. Here the chain itself
// is asked; it is monotone, so halving an interval finds where its answers change, and both agree by
// construction. converter/passes/integer_thresholds.py finds the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "builder/channel_chain.h"

namespace phonebit::engine::builder {

/// The integers that an accumulator can take: low, low + step, ... high; at least two, below 2^31 - 1.
struct Reach {
  int64_t low, high, step;
};

/// bit = (negated[c] ? -v : v) >= threshold[c].
template <class T>
struct Thresholds {
  std::vector<T> threshold;
  std::vector<bool> negated;
};

/// Throws Error(input) that begins with `where` if the chain is not a number somewhere.
Thresholds<int32_t> integer_thresholds(const ChannelChain& chain, const Reach& reach,
                                       const std::string& where);

/// For every float32 but NaN; infinite thresholds mean never, or always.
Thresholds<float> float_thresholds(const ChannelChain& chain);

}  // namespace phonebit::engine::builder
