// Which planes a group of filters adds, and in which order.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "shared_sums_add.inl"
#include "shared_sums_shape.inl"

constexpr int kMaxFilters = 6;  // of a group

/// How many filters share sums: the longer the windows, the more classes pay. A block's last group has four.
int group_filters(const ConvShape& s) {
  return window_positions(s) < 1000 ? 4 : window_positions(s) < 2000 ? 5 : kMaxFilters;
}
int filters_from(const ConvShape& s, int channel) {
  const int left = kChannelBlock - channel % kChannelBlock;
  return left < group_filters(s) ? left : group_filters(s);
}
int group_count(const ConvShape& s) { return (kChannelBlock + group_filters(s) - 1) / group_filters(s); }

/// Of a block's lists: each has a head, and a length and up to 7 positions without effect for each of 2^F runs.
size_t block_entries(const ConvShape& s) {
  return (size_t)group_count(s) * (1 + window_positions(s) + (kUnit << group_filters(s)));
}

PHONEBIT_INLINE int filter_bit(const uint32_t* filter, int position) {
  return filter[position / 32] >> (position % 32) & 1;
}

/// The list of a group: whether sums have more than 8 digits, then for each class four runs: those in which the last
/// filter differs from the first, then the others; of each, those where the first filter is 0, then 1. A run is
/// [units][offsets of planes]. Returns its end.
uint16_t* pack_group(const ConvShape& s, const uint32_t* filters, int filter_count, uint16_t* out) {
  const int count = window_positions(s);
  const int last = 1 << (filter_count - 2);
  uint16_t* const head = out++;
  *head = 0;
  uint8_t patterns[kMaxSharedPositions];  // the first filter's bit, and which others differ from it
  for (int i = 0; i < count; ++i) {
    const int first = filter_bit(filters, i);
    int pattern = first;
    for (int f = 1; f < filter_count; ++f)
      pattern |= (filter_bit(filters + f * (count / 32), i) ^ first) << f;
    patterns[i] = (uint8_t)pattern;
  }
  for (int of_class = 0; of_class < last; ++of_class) {
    int in_class = 0;
    for (int run = 0; run < 4; ++run) {
      const int first = run % 2, pattern = (of_class | (run < 2 ? last : 0)) << 1 | first;
      uint16_t* const units = out++;
      int length = 0;
      for (int i = 0; i < count; ++i) {
        if (patterns[i] != pattern) continue;
        const int tap = i / s.in_c, plane = tap % s.kernel_w * plane_channels(s) + i % s.in_c;
        *out++ = (uint16_t)(plane * plane_step(s) + tap / s.kernel_w * row_groups(s));
        ++length;
      }
      in_class += length;
      for (; length % kUnit != 0; ++length) *out++ = (uint16_t)(constants_offset(s) + first * 64);
      *units = (uint16_t)(length / kUnit);
    }
    if (in_class > 255) *head = 1;
  }
  return out;
}
