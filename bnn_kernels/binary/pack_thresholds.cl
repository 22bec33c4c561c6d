// @kernel   pack_thresholds   accumulators to packed bits
// @math     bit = acc >= T[c]
// @args     int first_pixel, int end_pixel, int* accumulators, int* thresholds, uint* bits
// @geometry global = (roundup(pixels*OUT_WORDS, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over words
// @requires THRESHOLD
// @ref      BINARY_CONV2D   @source PhoneBit VI-B (separate packing, after bconv2d_accumulate)
#include "common/dialect.clh"

// thresholds: OUT_C entries, those of the file.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void pack_thresholds(
    int first_pixel, int end_pixel, __global const int* restrict accumulators, __global const int* restrict thresholds,
    __global uint* restrict bits) {
  const int item = first_pixel * OUT_WORDS + (int)get_global_id(0);
  if (item >= end_pixel * OUT_WORDS) return;
  const int channel = REMAINDER(item, OUT_WORDS) * 32;
  const int channels = min(32, OUT_C - channel);
  const int from = QUOTIENT(item, OUT_WORDS) * OUT_C + channel;
  uint packed = 0;
  for (int i = 0; i < channels; ++i) packed += accumulators[from + i] >= thresholds[channel + i] ? 1u << i : 0u;
  bits[item] = packed;
}
