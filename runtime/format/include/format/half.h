// Float32 to IEEE half and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace phonebit::engine::format {

/// Round to nearest even; too large becomes infinity.
uint16_t to_half(float value);
/// Exact.
float from_half(uint16_t half);

std::vector<uint16_t> to_halves(const float* values, size_t count);
void from_halves(const uint16_t* halves, size_t count, float* values);

}  // namespace phonebit::engine::format
