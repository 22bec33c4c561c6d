// Moving runs of bits between packed pixels at any bit position.
#pragma once

#include <cstdint>
#include <cstring>

namespace phonebit::engine::cpu {

/// Copies `count` bits that start at bit `from` of `source` to the start of `target`; clears the target's
/// tail bits.
inline void extract_bits(const uint32_t* source, int from, int count, uint32_t* target) {
  source += from / 32;
  const int shift = from % 32;
  const int target_words = (count + 31) / 32;
  if (shift == 0) {
    std::memcpy(target, source, static_cast<size_t>(target_words) * sizeof(uint32_t));
  } else {
    const int source_words = (shift + count + 31) / 32;
    for (int i = 0; i < target_words; ++i) {
      const uint32_t high = i + 1 < source_words ? source[i + 1] << (32 - shift) : 0;
      target[i] = source[i] >> shift | high;
    }
  }
  const int tail = count % 32;
  if (tail != 0) target[target_words - 1] &= (1u << tail) - 1;
}

/// Appends `count` bits of `source` (tail bits 0) at bit `at` of `target`. Bits are appended in order:
/// whatever word is begun is overwritten, so that a pixel needs no clearing before its first run, and its
/// tail bits end up 0.
inline void append_bits(uint32_t* target, int at, const uint32_t* source, int count) {
  target += at / 32;
  const int shift = at % 32;
  const int source_words = (count + 31) / 32;
  if (shift == 0) {
    std::memcpy(target, source, static_cast<size_t>(source_words) * sizeof(uint32_t));
    return;
  }
  const int target_words = (shift + count + 31) / 32;
  target[0] |= source[0] << shift;
  for (int i = 1; i < target_words; ++i) {
    const uint32_t high = i < source_words ? source[i] << shift : 0;
    target[i] = source[i - 1] >> (32 - shift) | high;
  }
}

}  // namespace phonebit::engine::cpu
