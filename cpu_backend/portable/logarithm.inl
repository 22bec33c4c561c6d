// log on float vectors. Only +, -, * and integer operations, each rounded once, so that every ISA gives the
// same bits. Within 1 unit in the last place of the exact value (tests measure it).
//
// Include inside an anonymous namespace of phonebit::cpu, after portable/intrinsics.h.
#pragma once

#include "simd.inl"

/// log(x) = n * ln 2 + log(1 + z), x = 2^n * (1 + z) with 1 + z from sqrt(1/2) to sqrt(2), for positive
/// normal x; NaN stays NaN.
PHONEBIT_NOINLINE FloatVector logarithm(FloatVector x) {
  // Taking the bits of sqrt(1/2) away makes n the exponent of what is left, rounded down.
  const IntVector k = ((IntVector)x - 0x3f3504f3) >> 23;
  const FloatVector z = (FloatVector)((IntVector)x - (k << 23)) - 1.0f;
  const FloatVector n = __builtin_convertvector(k, FloatVector);
  // log(1 + z) = z - z^2 / 2 + z^3 p(z); p is our own minimax polynomial, for the relative error of the
  // result.
  FloatVector p = broadcast(-7.634400576e-2f);
  p = p * z + 1.276142895e-1f;
  p = p * z - 1.316014826e-1f;
  p = p * z + 1.420177519e-1f;
  p = p * z - 1.662336290e-1f;
  p = p * z + 2.000122666e-1f;
  p = p * z - 2.500081956e-1f;
  p = p * z + 3.333333135e-1f;
  // Small terms first; ln 2 in the two parts of exponential().
  const FloatVector square = z * z;
  const FloatVector small = p * z * square + n * -2.12194440e-4f - square * 0.5f;
  const FloatVector result = z + small + n * 0.693359375f;
  return x == x ? result : x;
}
