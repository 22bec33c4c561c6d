// exp, sigmoid and tanh on float vectors. Only +, -, *, / and integer operations, each rounded once, so that
// every ISA gives the same bits. Within 2 units in the last place of the exact value for normal results
// (tests measure it).
//
// Include inside an anonymous namespace of phonebit::cpu, after portable/intrinsics.h.
#pragma once

#include "simd.inl"

/// 2^k for integers k in [-126, 127]: the exponent field of a float.
PHONEBIT_INLINE FloatVector power_of_two(IntVector k) { return (FloatVector)((k + 127) << 23); }

/// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln(2) / 2.
/// Limits: exp(-inf) = 0, exp(+inf) = inf, NaN stays NaN; denormal results are rounded by the last
/// multiplication.
PHONEBIT_NOINLINE FloatVector exponential(FloatVector x) {
  // Beyond these the result is 0 or inf anyway; n stays small enough to be applied in two halves.
  const FloatVector y = minimum(maximum(x, broadcast(-104.0f)), broadcast(89.0f));
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low mantissa bits.
  const FloatVector magic = broadcast(12582912.0f);
  const FloatVector shifted = y * 1.44269504088896341f + magic;
  const FloatVector n = shifted - magic;
  const IntVector k = (IntVector)shifted - (IntVector)magic;
  // ln 2 in two parts; the first has 9 mantissa bits, so n * 0.693359375 is exact (Cody and Waite).
  const FloatVector r = y - n * 0.693359375f - n * -2.12194440e-4f;
  // Minimax polynomial of Cephes' expf.
  FloatVector p = broadcast(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const IntVector half = k >> 1;
  const FloatVector result = p * power_of_two(half) * power_of_two(k - half);
  return x == x ? result : x;
}

/// 1 / (1 + exp(-x)), by the exponential of -|x| so that nothing overflows.
PHONEBIT_NOINLINE FloatVector sigmoid(FloatVector x) {
  const FloatVector magnitude = x < 0.0f ? -x : x;
  const FloatVector e = exponential(-magnitude);
  const FloatVector numerator = x < 0.0f ? e : broadcast(1.0f);
  return numerator / (e + 1.0f);
}

/// tanh(x) = 1 - 2 / (exp(2x) + 1) for large |x|; near 0, where that cancels, Cephes' odd polynomial.
PHONEBIT_NOINLINE FloatVector hyperbolic_tangent(FloatVector x) {
  const FloatVector magnitude = x < 0.0f ? -x : x;
  const FloatVector z = x * x;
  FloatVector p = broadcast(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const FloatVector small = p * z * x + x;
  const FloatVector positive = 1.0f - 2.0f / (exponential(magnitude * 2.0f) + 1.0f);
  const FloatVector large = x < 0.0f ? -positive : positive;
  return magnitude < 0.625f ? small : large;
}
