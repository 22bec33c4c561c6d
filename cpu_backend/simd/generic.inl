// Every primitive for any processor, by the compiler's vector extensions. What each must compute is said here;
// simd/<isa>.h replaces those for which its processors have instructions.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after inline.h and kVectorBytes.
#pragma once

#include "vectors.inl"

namespace generic {

/// x in every lane. (FloatVector{} + x would turn -0 into +0, and cost an addition.)
PHONEBIT_INLINE FloatVector broadcast(float x) {
  if constexpr (kLanes == 4) return FloatVector{x, x, x, x};
  FloatVector v;
  for (int i = 0; i < kLanes; i++) v[i] = x;
  return v;
}

/// The first `count` < kLanes floats, the other lanes 0; reads nothing beyond them.
PHONEBIT_INLINE FloatVector load_partial(const float* from, int count) {
  float lanes[kLanes] = {};
  for (int i = 0; i < count; i++) lanes[i] = from[i];
  return load(lanes);
}

PHONEBIT_INLINE void store_partial(float* to, FloatVector v, int count) {
  float lanes[kLanes];
  store(lanes, v);
  for (int i = 0; i < count; i++) to[i] = lanes[i];
}

/// kLanes integers as floats.
PHONEBIT_INLINE FloatVector load_bytes(const int8_t* from) {
  typedef int8_t ByteVector __attribute__((vector_size(kLanes)));
  const IntVector whole = __builtin_convertvector(load<ByteVector>(from), IntVector);
  return __builtin_convertvector(whole, FloatVector);
}

/// kLanes halves as floats, exactly; subnormal ones too, whatever the processor's mode for subnormal floats.
PHONEBIT_INLINE FloatVector load_halves(const uint16_t* from) {
  typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes / 2)));
  const WordVector half = __builtin_convertvector(load<HalfVector>(from), WordVector);
  const WordVector magnitude = (half & 0x7fff) << 13;  // all fields in place; the exponent's bias is still 15
  const WordVector normal = magnitude + ((127u - 15u) << 23);
  // A subnormal half is fraction * 2^-24: put 2^-14 in front of the fraction, and subtract it again.
  const FloatVector from_below = (FloatVector)(magnitude + ((127u - 14u) << 23)) - broadcast(0x1p-14f);
  const WordVector is_normal = (WordVector)(magnitude >= 1u << 23);
  const WordVector bits = (normal & is_normal) | ((WordVector)from_below & ~is_normal);
  return (FloatVector)(bits | (half & 0x8000) << 16);
}

/// a * b + c. kFuses: with one rounding, so that float layers compute the same bits as elsewhere. The library function
/// does without an instruction, slowly. Others may return a * b + c with two roundings and have kFuses = false.
constexpr bool kFuses = true;
PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
  FloatVector r;
  for (int i = 0; i < kLanes; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
}

/// a > b ? a : b, and a < b ? a : b: b where either is a NaN.
PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) { return a > b ? a : b; }
PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) { return a < b ? a : b; }

/// The nearest integer, halves to even; it keeps the sign of v, also where it is 0. NaN stays NaN.
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) {
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
}

/// OR of the lanes, no two of which share a bit.
PHONEBIT_INLINE uint32_t join_lanes(WordVector v) {
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; i++) bits |= v[i];
  return bits;
}

/// The number of ones in each lane.
PHONEBIT_INLINE IntVector count_ones(WordVector v) {
  v = v - (v >> 1 & 0x55555555u);
  v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0fu;
  v = v + (v >> 8);
  return (IntVector)((v + (v >> 16)) & 0xffu);
}

// Levels of images, for resampling.inl; kLanes is a multiple of kPixelLevels.

/// kLanes levels as integers.
PHONEBIT_INLINE IntVector load_levels(const uint8_t* from) {
  typedef uint8_t ByteVector __attribute__((vector_size(kLanes)));
  return __builtin_convertvector(load<ByteVector>(from), IntVector);
}
/// kLanes integers, those below 0 as 0 and those above 255 as 255.
PHONEBIT_INLINE void store_levels(uint8_t* to, IntVector v) {
  typedef uint8_t ByteVector __attribute__((vector_size(kLanes)));
  v = v < 0 ? IntVector{} : v;
  v = v > 255 ? IntVector{} + 255 : v;
  store(to, __builtin_convertvector(v, ByteVector));
}
/// A pixel's levels, likewise.
PHONEBIT_INLINE void store_pixel(uint8_t* to, PixelVector v) {
  typedef uint8_t ByteVector __attribute__((vector_size(4)));
  v = v < 0 ? PixelVector{} : v;
  v = v > 255 ? PixelVector{} + 255 : v;
  store(to, __builtin_convertvector(v, ByteVector));
}
/// Each of kLanes / 4 weights for the levels of its pixel.
PHONEBIT_INLINE IntVector spread_weights(const int32_t* from) {
  IntVector v;
  for (int i = 0; i < kLanes; i++) v[i] = from[i / 4];
  return v;
}
/// The sum of the kLanes / 4 pixels.
PHONEBIT_INLINE PixelVector sum_pixels(IntVector v) {
  PixelVector sum = {};
  for (int i = 0; i < kLanes; i++) sum[i % 4] += v[i];
  return sum;
}

// Products of four bytes per channel, for i8_conv.inl: sum += w[0] x[0] + … + w[3] x[3].

/// What an input is stored as. A group of taps is 32 bits of them.
using MapValue = uint8_t;
/// What is added to inputs; the packed constants subtract it again.
constexpr int kByteOffset = 0;
/// kLanes channels' weights of a group, in the form that the products want, and the sums of kLanes channels.
struct GroupWeights {
  IntVector weights;
};
struct GroupSums {
  IntVector sums;
};

PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) { return {load<IntVector>(from)}; }

/// `inputs`: those of a group.
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.sums +=
        ((IntVector)((WordVector)w.weights << shift) >> 24) * ((int32_t)((uint32_t)inputs << shift) >> 24);
}

PHONEBIT_INLINE IntVector group_sums(const GroupSums& from) { return from.sums; }

// Products of four u8 and weights of +1/-1, for u8_products.inl.

/// The bytes of weights. Masks m (255 for +1, 0 for -1) select inputs: with A = sum over taps of x & m and the
/// window's total, S = sum over +1 taps of x - sum over -1 taps of x = 2 A - total.
constexpr int kPlusByte = 255, kMinusByte = 0;
/// Groups that 16 bits hold: two taps of 255 per group, unsigned: 128 * 510 = 65280.
constexpr int kFlushGroups = 128;
/// The sums of a vector of channels.
typedef WordVector U8VectorSum;

/// sum += the products of four bytes of x and weight, by 32-bit lane.
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes)));
  const HalfVector chosen = (HalfVector)(x & weight);
  return (WordVector)((HalfVector)sum + (chosen & 0xff) + (chosen >> 8));
}

/// The 32-bit sum of each lane.
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) { return (IntVector)((sum >> 16) + (sum & 0xffffu)); }

}  // namespace generic
