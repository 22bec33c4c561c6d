// One float vector type whose width is the ISA's, by the compiler's vector extensions: +, -, *, /, compares
// and selects are operators, so one source serves SSE2, AVX2, AVX-512 and NEON. Only what the extensions lack
// (fused multiply-add, packing compare results into bits, partial loads) is written per ISA.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#if !defined(PHONEBIT_INLINE)
#error "include portable/intrinsics.h at file scope first"
#endif

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef int32_t IntVector __attribute__((vector_size(kVectorBytes)));
typedef uint32_t WordVector __attribute__((vector_size(kVectorBytes)));

/// A loop counter that is a constant in every iteration (see unroll).
template <int kIndex>
struct Index {
  constexpr operator int() const { return kIndex; }
};

/// body(0), body(1) … body(kCount - 1) as straight code. Arrays indexed by it become registers in the first
/// optimisation passes of gcc and clang, which a rolled loop does not guarantee.
template <int kCount, int kIndex = 0, class Body>
PHONEBIT_INLINE void unroll(const Body& body) {
  if constexpr (kIndex < kCount) {
    body(Index<kIndex>{});
    unroll<kCount, kIndex + 1>(body);
  }
}

template <class Vector = FloatVector, class Element>
PHONEBIT_INLINE Vector load(const Element* from) {
  Vector v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class Vector, class Element>
PHONEBIT_INLINE void store(Element* to, Vector v) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// x in every lane. (FloatVector{} + x would turn -0 into +0, and cost an addition.)
PHONEBIT_INLINE FloatVector broadcast(float x) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_set1_ps(x);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_set1_ps(x);
#else
  return FloatVector{x, x, x, x};
#endif
}

/// The first `count` < kLanes floats, the other lanes 0; reads nothing beyond them.
PHONEBIT_INLINE FloatVector load_partial(const float* from, int count) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
  float lanes[kLanes] = {};
  for (int i = 0; i < count; i++) lanes[i] = from[i];
  return load(lanes);
#endif
}

PHONEBIT_INLINE void store_partial(float* to, FloatVector v, int count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)v);
#else
  float lanes[kLanes];
  store(lanes, v);
  for (int i = 0; i < count; i++) to[i] = lanes[i];
#endif
}

/// a * b + c with one rounding, on every ISA.
PHONEBIT_INLINE FloatVector fused_multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (FloatVector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  // No vector form without the FMA extension: the library function is exact, though slow.
  FloatVector r;
  for (int i = 0; i < kLanes; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

/// a > b ? a : b, and a < b ? a : b: b where either is a NaN.
PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (FloatVector)_mm_max_ps((__m128)a, (__m128)b);
#else
  return a > b ? a : b;
#endif
}

PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (FloatVector)_mm_min_ps((__m128)a, (__m128)b);
#else
  return a < b ? a : b;
#endif
}

/// The nearest integer, halves to even; it keeps the sign of v, also where it is 0. NaN stays NaN.
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_roundscale_ps((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_round_ps((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return (FloatVector)vrndnq_f32((float32x4_t)v);
#else
  // Only conversions that cut off and exact sums, so that neither the processor's rounding mode nor the
  // compiler's liberties with arithmetic matter.
  const IntVector sign = (IntVector)v & (IntVector)broadcast(-0.0f);
  const FloatVector magnitude = (FloatVector)((IntVector)v ^ sign);
  const IntVector has_fraction = (IntVector)magnitude < 0x4b000000;  // |v| < 2^23; larger ones are integers
  const FloatVector reduced = has_fraction ? magnitude : FloatVector{};
  const IntVector below = __builtin_convertvector(reduced, IntVector);
  const FloatVector fraction = reduced - __builtin_convertvector(below, FloatVector);
  const IntVector is_odd = (below & 1) != 0;
  const IntVector goes_up = (fraction > 0.5f) | ((fraction == 0.5f) & is_odd);  // -1 where true
  const FloatVector rounded = __builtin_convertvector(below - goes_up, FloatVector);
  return has_fraction ? (FloatVector)((IntVector)rounded | sign) : v;
#endif
}

/// Bit (kLanes * i + lane) of the result = v[i][lane] >= t[i][lane]; false for NaN.
template <int kVectors>
PHONEBIT_INLINE uint64_t greater_equal_bits(const FloatVector (&v)[kVectors],
                                            const FloatVector (&t)[kVectors]) {
  uint64_t bits = 0;
#if defined(__AVX512F__)
  unroll<kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    bits |= (uint64_t)_mm512_cmp_ps_mask((__m512)v[i], (__m512)t[i], _CMP_GE_OQ) << (16 * i);
  });
#elif defined(__AVX2__)
  unroll<kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const __m256 ge = _mm256_cmp_ps((__m256)v[i], (__m256)t[i], _CMP_GE_OQ);
    bits |= (uint64_t)(unsigned)_mm256_movemask_ps(ge) << (8 * i);
  });
#elif defined(__SSE2__)
  unroll<kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const __m128 ge = _mm_cmpge_ps((__m128)v[i], (__m128)t[i]);
    bits |= (uint64_t)(unsigned)_mm_movemask_ps(ge) << (4 * i);
  });
#else
  // Every lane of eight vectors owns one bit of a word: or them together, then one sum across lanes.
  unroll<(kVectors + 7) / 8>([&](auto w) PHONEBIT_LAMBDA_INLINE {
    WordVector word = {};
    unroll<(kVectors < 8 ? kVectors : 8)>([&](auto i) PHONEBIT_LAMBDA_INLINE {
      constexpr uint32_t kFirst = 1u << (4 * i);
      const WordVector lane_bits = {kFirst, kFirst << 1, kFirst << 2, kFirst << 3};
      word |= (WordVector)(v[8 * w + i] >= t[8 * w + i]) & lane_bits;
    });
#if defined(__aarch64__)
    const uint32_t sum = vaddvq_u32((uint32x4_t)word);
#else
    const uint32_t sum = word[0] + word[1] + word[2] + word[3];
#endif
    bits |= (uint64_t)sum << (32 * w);
  });
#endif
  return bits;
}
