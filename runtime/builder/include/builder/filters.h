// Weights of convolutions as the file holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "builder/layer_arguments.h"

namespace phonebit::engine::builder {

/// How many numbers a convolution multiplies by: [filters][taps][channels].
struct FilterShape {
  size_t filters, taps, channels;
};

/// Throws Error(input) that begins with `where` unless these are weights of this shape: their number, finite
/// values, clear bits after the last channel.
void check_weights(const Weights& weights, const FilterShape& shape, const std::string& where);

/// Signs in words, 32 channels of a tap in each: [filters][taps][words]. `negated`: filters whose signs
/// change; may be empty.
std::vector<uint32_t> pack_filters(const Weights& weights, const FilterShape& shape,
                                   const std::vector<bool>& negated);

/// Signs of filters of one channel each, 32 filters in a word: [taps][words].
std::vector<uint32_t> pack_depthwise(const Weights& weights, const FilterShape& shape,
                                     const std::vector<bool>& negated);

}  // namespace phonebit::engine::builder
