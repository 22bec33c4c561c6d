// Float32 to half and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace phonebit::opencl {

/// Round to nearest even; too large becomes infinity.
uint16_t to_half(float value);
float from_half(uint16_t half);

std::vector<uint16_t> to_halves(const float* values, size_t count);
void from_halves(const std::vector<uint16_t>& halves, float* values);

}  // namespace phonebit::opencl
