// Lists of positions of filters that share sums (binary_conv_shared_sums.cpp).
#pragma once

#include "shared_planes.h"

namespace phonebit::engine::cpu {

constexpr int kMaxFilters = 6;
constexpr int kUnit = 16, kMaxUnits = 15;  // a chunk of a list: its sum has 8 digits
constexpr int kChunk = kUnit * kMaxUnits, kDigits = 8;

/// Packed: [entries of shared.h][lists]. A list is parts of chunks, each [head][positions], and 0. Head: how many units
/// of positions; whether the chunk ends; whether its sum up to there is the first of its only filter; and, bit by bit,
/// to which filters that sum goes, T being the last.
constexpr int kEnd = 1 << 4, kFirst = 1 << 5, kFirstFilter = 6;

inline int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }
inline int channels_of(const ConvShape& s, int block) {
  const int left = s.out_c - block * kChannelBlock;
  return left < kChannelBlock ? left : kChannelBlock;
}

size_t block_entries(const ConvShape& s);
size_t packed_list_bytes(const ConvShape& s);
void pack_lists(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed);

}  // namespace phonebit::engine::cpu
