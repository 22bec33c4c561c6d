#include "format/half.h"

#include <algorithm>
#include <cstring>

namespace phonebit::engine::format {

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
  const uint32_t sign = (half & 0x8000u) << 16;
  uint32_t bits = (half & 0x7fffu) << 13;  // the exponent has come to its place, with a bias of 15
  if (bits >= 31u << 23) {
    bits += (255u - 31u) << 23;  // infinity, NaN
  } else if (bits >= 1u << 23) {
    bits += (127u - 15u) << 23;
  } else {
    const float subnormal = static_cast<float>(half & 0x3ff) * 0x1p-24f;
    std::memcpy(&bits, &subnormal, sizeof bits);
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::vector<uint16_t> to_halves(const float* values, size_t count) {
  std::vector<uint16_t> halves(count);
  std::transform(values, values + count, halves.begin(), to_half);
  return halves;
}

void from_halves(const uint16_t* halves, size_t count, float* values) {
  std::transform(halves, halves + count, values, from_half);
}

}  // namespace phonebit::engine::format
