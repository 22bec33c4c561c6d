#include "opencl/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace phonebit::opencl {

uint16_t to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u)
    return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u));
  const int exponent = static_cast<int>(magnitude >> 23);
  // Normal halves drop 13 mantissa bits; below 2^-14 the exponent's distance is dropped too.
  const bool is_normal = exponent >= 113;
  const int dropped = is_normal ? 13 : std::min(13 + 113 - exponent, 31);
  const uint32_t mantissa = is_normal ? magnitude - (112u << 23) : (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t rest = mantissa & ((1u << dropped) - 1), half_way = 1u << (dropped - 1);
  uint32_t result = mantissa >> dropped;
  if (rest > half_way || (rest == half_way && (result & 1) != 0)) ++result;
  return static_cast<uint16_t>(sign | result);
}

float from_half(uint16_t half) {
  const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  const float magnitude = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<uint16_t> to_halves(const float* values, size_t count) {
  std::vector<uint16_t> halves(count);
  std::transform(values, values + count, halves.begin(), to_half);
  return halves;
}

void from_halves(const std::vector<uint16_t>& halves, float* values) {
  std::transform(halves.begin(), halves.end(), values, from_half);
}

}  // namespace phonebit::opencl
