// Which convolutions of float32 values run in 8-bit integers, and why that is right.
#pragma once

#include <string>

#include "loader/model.h"
#include "types/options.h"

namespace phonebit::engine::cpu {

enum class I8Arithmetic {
  none,
  /// The operand's values are small integers, as are the weights: integer sums are the float32 sums, bit for
  /// bit, since every partial sum is an integer of at most 2^24.
  exact,
  /// Precision::fast: values are quantized by their largest magnitude in the image (µLayer, section 4).
  quantized,
};

/// For a CONV2D over F32. Exact arithmetic counts on the op being given what the ops before it can compute.
I8Arithmetic i8_arithmetic(const loader::Model& model, const loader::Op& op, Precision precision);

/// The largest magnitude of a tensor that by its definition holds integers only, as bits turned into floats
/// do; 0 where that cannot be told.
int largest_integer(const loader::Model& model, int tensor);

/// Which layers Precision::fast leaves exact, and what to do; empty if there are none. Layers with weights of
/// -1 and +1 do not count.
std::string kept_exact_text(const loader::Model& model);

}  // namespace phonebit::engine::cpu
