// Vectors of float32 from weights in memory, which are floats, the bits of finite IEEE halves, or bytes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "simd.inl"

PHONEBIT_INLINE FloatVector load_floats(const float* from) { return load(from); }

/// kLanes integers.
PHONEBIT_INLINE FloatVector load_floats(const int8_t* from) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)from)));
#elif defined(__AVX2__)
  return (FloatVector)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from)));
#else
  typedef int8_t ByteVector __attribute__((vector_size(kLanes)));
  const IntVector whole = __builtin_convertvector(load<ByteVector>(from), IntVector);
  return __builtin_convertvector(whole, FloatVector);
#endif
}

/// kLanes halves as float32, exactly; subnormal ones too, whatever the processor's mode for subnormal floats.
PHONEBIT_INLINE FloatVector load_floats(const uint16_t* from) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
#elif defined(__F16C__) && defined(__AVX2__)
  return (FloatVector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
#elif defined(__aarch64__)
  return (FloatVector)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
#else
  typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes / 2)));
  const WordVector half = __builtin_convertvector(load<HalfVector>(from), WordVector);
  const WordVector magnitude = (half & 0x7fff) << 13;  // all fields in place; the exponent's bias is still 15
  const WordVector normal = magnitude + ((127u - 15u) << 23);
  // A subnormal half is fraction * 2^-24: put 2^-14 in front of the fraction, and take it away again.
  const FloatVector from_below = (FloatVector)(magnitude + ((127u - 14u) << 23)) - broadcast(0x1p-14f);
  const WordVector is_normal = (WordVector)(magnitude >= 1u << 23);
  const WordVector bits = (normal & is_normal) | ((WordVector)from_below & ~is_normal);
  return (FloatVector)(bits | (half & 0x8000) << 16);
#endif
}
