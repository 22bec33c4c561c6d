#include "builder/filters.h"

#include <cmath>

#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

constexpr size_t kWordBits = 32;

size_t words_for(size_t bits) { return (bits + kWordBits - 1) / kWordBits; }

/// Whether weight `channel` of a row (one tap of one filter) is +1.
bool is_plus(const Weights& weights, const FilterShape& shape, size_t row, size_t channel) {
  if (weights.values.is_given()) return weights.values[row * shape.channels + channel] >= 0.0f;
  const uint32_t word = weights.packed[row * words_for(shape.channels) + channel / kWordBits];
  return (word >> (channel % kWordBits) & 1u) != 0;
}

void check_values(Floats values, const std::string& where) {
  for (size_t i = 0; i < values.count; ++i)
    if (!std::isfinite(values[i]))
      fail(ErrorCode::input, "%s: weight %zu is %g, expected a finite number", where.c_str(), i,
           static_cast<double>(values[i]));
}

void check_tails(Words packed, const FilterShape& shape, const std::string& where) {
  const size_t row_words = words_for(shape.channels), used = shape.channels % kWordBits;
  if (used == 0) return;
  for (size_t at = row_words - 1; at < packed.count; at += row_words)
    if (packed[at] >> used != 0)
      fail(ErrorCode::input, "%s: packed weights: word %zu has bits after the %zu channels, expected 0 there",
           where.c_str(), at, shape.channels);
}

void check_count(size_t got, size_t expected, const char* what, const FilterShape& shape,
                 const std::string& where) {
  if (got != expected)
    fail(ErrorCode::input,
         "%s: %s are %zu, expected %zu: %zu output channels, %zu taps, %zu input channels a group",
         where.c_str(), what, got, expected, shape.filters, shape.taps, shape.channels);
}

}  // namespace

void check_weights(const Weights& weights, const FilterShape& shape, const std::string& where) {
  if (weights.values.is_given() == weights.packed.is_given())
    fail(ErrorCode::input, "%s: got %s, expected either weights or packed weights", where.c_str(),
         weights.values.is_given() ? "both" : "no weights");
  const size_t rows = shape.filters * shape.taps;
  if (weights.values.is_given()) {
    check_count(weights.values.count, rows * shape.channels, "weights", shape, where);
    return check_values(weights.values, where);
  }
  if (!weights.is_binary)
    fail(ErrorCode::input, "%s: packed weights are signs; set is_binary", where.c_str());
  check_count(weights.packed.count, rows * words_for(shape.channels), "words of packed weights", shape,
              where);
  check_tails(weights.packed, shape, where);
}

std::vector<uint32_t> pack_filters(const Weights& weights, const FilterShape& shape,
                                   const std::vector<bool>& negated) {
  const size_t row_words = words_for(shape.channels);
  std::vector<uint32_t> words(shape.filters * shape.taps * row_words);
  for (size_t row = 0; row < shape.filters * shape.taps; ++row) {
    const bool is_negated = !negated.empty() && negated[row / shape.taps];
    for (size_t c = 0; c < shape.channels; ++c)
      if (is_plus(weights, shape, row, c) != is_negated)
        words[row * row_words + c / kWordBits] |= 1u << (c % kWordBits);
  }
  return words;
}

std::vector<uint32_t> pack_depthwise(const Weights& weights, const FilterShape& shape,
                                     const std::vector<bool>& negated) {
  const size_t tap_words = words_for(shape.filters);
  std::vector<uint32_t> words(shape.taps * tap_words);
  for (size_t filter = 0; filter < shape.filters; ++filter) {
    const bool is_negated = !negated.empty() && negated[filter];
    for (size_t tap = 0; tap < shape.taps; ++tap)
      if (is_plus(weights, shape, filter * shape.taps + tap, 0) != is_negated)
        words[tap * tap_words + filter / kWordBits] |= 1u << (filter % kWordBits);
  }
  return words;
}

}  // namespace phonebit::engine::builder
