#include "analysis/float_weights.h"

#include <algorithm>

#include "format/half.h"
#include "kernel_types.h"

namespace phonebit::engine::analysis {
namespace {

size_t group_channels(const loader::Model& model, const loader::Op& op) {
  return static_cast<size_t>(model.operand(op).channels) / op.record.groups;
}

/// Rows of `channels` bits, each in words of its own.
void expand_bits(const uint32_t* bits, size_t rows, size_t channels, float* values) {
  const auto row_words = static_cast<size_t>(cpu::words(static_cast<int>(channels)));
  for (size_t row = 0; row < rows; ++row, bits += row_words) {
    for (size_t c = 0; c < channels; ++c) *values++ = (bits[c / 32] >> (c % 32) & 1) != 0 ? 1.0f : -1.0f;
  }
}

}  // namespace

size_t weight_count(const loader::Model& model, const loader::Op& op) {
  return static_cast<size_t>(model.output(op).channels) * op.record.kernel_h * op.record.kernel_w *
         group_channels(model, op);
}

void write_float_weights(const loader::Model& model, const loader::Op& op, float* values) {
  const loader::Constant& stored = model.constant(op.record.weights);
  const size_t count = weight_count(model, op);
  switch (stored.dtype) {
    case format::DataType::kF32:
      std::copy_n(stored.f32(), count, values);
      return;
    case format::DataType::kF16:
      format::from_halves(stored.f16(), count, values);
      return;
    case format::DataType::kI8:
      std::copy_n(stored.i8(), count, values);
      return;
    default: {
      const size_t channels = group_channels(model, op);
      return expand_bits(stored.words(), count / channels, channels, values);
    }
  }
}

}  // namespace phonebit::engine::analysis
