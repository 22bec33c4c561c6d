// From packed bits to lanes: the helpers that expand words.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h.
#pragma once

/// {0, 1, 2, …}
PHONEBIT_INLINE IntVector lane_numbers() {
  IntVector n;
  for (int i = 0; i < kLanes; i++) n[i] = i;
  return n;
}

/// All ones in the lanes whose bit (first + lane) of `word` is set.
PHONEBIT_INLINE IntVector lanes_of_bits(uint32_t word, int first) {
  const WordVector ones = WordVector{} + 1u, lane_bit = ones << (WordVector)lane_numbers();
  return ((WordVector{} + (word >> first)) & lane_bit) != 0u;
}
