// Bits of compares where an instruction makes them of a vector.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after greater_equal_bits of one vector.
#pragma once

/// Bit (kLanes * i + lane) of the result = v[i][lane] >= t[i][lane]; false for NaN.
template <class Vector, int kVectors>
PHONEBIT_INLINE uint64_t greater_equal_bits(const Vector (&v)[kVectors], const Vector (&t)[kVectors]) {
  uint64_t bits = 0;
  unroll<kVectors>([&](int i) PHONEBIT_LAMBDA_INLINE {
    bits |= (uint64_t)greater_equal_bits(v[i], t[i]) << (kLanes * i);
  });
  return bits;
}
