// @kernel   bit_planes   whole numbers to bits, a map of packed bits for each
// @math     bit b of v, cut to a whole number from 0 to 255 (NaN: 0)
// @args     int first_pixel, int end_pixel, void* input, uint* plane0, uint* plane1, uint* plane2, uint* plane3, uint* plane4, uint* plane5, uint* plane6, uint* plane7
// @in       [pixels of the batch][OUT_C] float or half
// @out      PLANES maps [pixels of the batch][OUT_WORDS] uint, the lowest bit first; other arguments are not used
// @geometry global = (roundup(pixels*OUT_WORDS, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over words
// @ref      BIT_PLANES   @source own
#include "common/values.clh"

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bit_planes(
    int first_pixel, int end_pixel, __global const void* restrict input, __global uint* plane0, __global uint* plane1,
    __global uint* plane2, __global uint* plane3, __global uint* plane4, __global uint* plane5, __global uint* plane6,
    __global uint* plane7) {
  const int item = first_pixel * OUT_WORDS + (int)get_global_id(0);
  if (item >= end_pixel * OUT_WORDS) return;
  const int channel = REMAINDER(item, OUT_WORDS) * 32;
  const int channels = min(32, OUT_C - channel);
  const int from = QUOTIENT(item, OUT_WORDS) * OUT_C + channel;
  uint packed[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < channels; ++i) {
    const float v = LOAD_VALUE(INPUT_HALF, input, from + i);
    const uint whole = (uint)(v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f);
#pragma unroll
    for (int b = 0; b < 8; ++b) packed[b] |= b < PLANES ? (whole >> b & 1u) << i : 0u;
  }
  plane0[item] = packed[0];
  if (PLANES > 1) plane1[item] = packed[1];
  if (PLANES > 2) plane2[item] = packed[2];
  if (PLANES > 3) plane3[item] = packed[3];
  if (PLANES > 4) plane4[item] = packed[4];
  if (PLANES > 5) plane5[item] = packed[5];
  if (PLANES > 6) plane6[item] = packed[6];
  if (PLANES > 7) plane7[item] = packed[7];
}
