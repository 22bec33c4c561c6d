// Bits of compares where no instruction makes them of a vector: every lane of eight vectors of four lanes owns one bit
// of a word. The vectors are combined by OR, then the lanes by join_lanes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after join_lanes.
#pragma once

/// Bit (kLanes * i + lane) of the result = v[i][lane] >= t[i][lane]; false for NaN.
template <class Vector, int kVectors>
PHONEBIT_INLINE uint64_t greater_equal_bits(const Vector (&v)[kVectors], const Vector (&t)[kVectors]) {
  static_assert(kLanes == 4);
  constexpr int kWordVectors = 32 / kLanes;
  uint64_t bits = 0;
  unroll<(kVectors + kWordVectors - 1) / kWordVectors>([&](auto w) PHONEBIT_LAMBDA_INLINE {
    WordVector word = {};
    unroll<(kVectors < kWordVectors ? kVectors : kWordVectors)>([&](auto i) PHONEBIT_LAMBDA_INLINE {
      constexpr uint32_t kFirst = 1u << (kLanes * i);
      const WordVector lane_bits = {kFirst, kFirst << 1, kFirst << 2, kFirst << 3};
      word |= (WordVector)(v[kWordVectors * w + i] >= t[kWordVectors * w + i]) & lane_bits;
    });
    bits |= (uint64_t)join_lanes(word) << (32 * w);
  });
  return bits;
}

/// Of one vector.
PHONEBIT_INLINE uint32_t greater_equal_bits(IntVector v, IntVector t) {
  const IntVector vs[1] = {v}, ts[1] = {t};
  return (uint32_t)greater_equal_bits(vs, ts);
}
