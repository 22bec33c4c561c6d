#include "format/half.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace phonebit::engine::format {

namespace {

#if defined(__aarch64__) && defined(__GNUC__)

uint16_t to_half(float value) {
  const auto half = static_cast<__fp16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

float from_half(uint16_t bits) {
  __fp16 half;
  std::memcpy(&half, &bits, sizeof half);
  return half;
}

#else

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

#endif

#if defined(__x86_64__) && defined(__GNUC__)

constexpr size_t kLanes = 8;

/// Every processor with AVX2 has F16C, for which older clangs cannot ask.
bool has_f16c() { return __builtin_cpu_supports("avx2") != 0; }

/// Whole vectors of what is to be converted; returns how many values these are.
__attribute__((target("avx,f16c"))) size_t to_halves_f16c(const float* values, size_t count,
                                                          uint16_t* halves) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i eight = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i), eight);
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t from_halves_f16c(const uint16_t* halves, size_t count,
                                                            float* values) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(eight));
  }
  return i;
}

#endif

}  // namespace

void to_halves(const float* values, size_t count, uint16_t* halves) {
  size_t done = 0;
#if defined(__x86_64__) && defined(__GNUC__)
  if (has_f16c()) done = to_halves_f16c(values, count, halves);
#endif
  std::transform(values + done, values + count, halves + done, to_half);
}

std::vector<uint16_t> to_halves(const float* values, size_t count) {
  std::vector<uint16_t> halves(count);
  to_halves(values, count, halves.data());
  return halves;
}

void from_halves(const uint16_t* halves, size_t count, float* values) {
  size_t done = 0;
#if defined(__x86_64__) && defined(__GNUC__)
  if (has_f16c()) done = from_halves_f16c(halves, count, values);
#endif
  std::transform(halves + done, halves + count, values + done, from_half);
}

}  // namespace phonebit::engine::format
