// @kernel   bconv2d_grouped   every binary convolution: any number of groups, at any bit of a word
// @math     d = popcount(in ^ w) over all taps and the group's channels; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  canonical
// @geometry global = (roundup(pixels, GROUP_SIZE), ceil(channels / 32) * 4), local = (GROUP_SIZE, 4)
// @channels 8
// @tune     GROUP_SIZE {16,32,64} = 64   work-items over the pixels of a group; four times as many share its words of bits
// @ref      BINARY_CONV2D   @source own
//
// A work-item computes 8 filters of one pixel, one after the other. A padded tap of a group reads as PAD_BITS in the
// group's IN_C / GROUPS valid bits.
#include "common/words.clh"
#include "common/counts.clh"
#define ITEM_BITS 8
#include "common/shared_words.clh"

#define GROUP_C (IN_C / GROUPS)
#define GROUP_WORDS ((GROUP_C + 31) / 32)
#define GROUP_OUT_C (OUT_C / GROUPS)
#define FILTER_WORDS (KERNEL_H * KERNEL_W * GROUP_WORDS)

uint count_window(__global const uint* input, int image, __global const uint* weights, int filter, int y, int x, int group) {
  uint d = 0;
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x, kx);
      const int inside = INSIDE(in_y, in_x);
      const int tap = image + (inside ? (in_y * IN_W + in_x) * IN_WORDS : 0);
      for (int i = 0; i < GROUP_WORDS; ++i) {
        const int count = min(32, GROUP_C - 32 * i);
        const uint found = GROUPS == 1 ? input[tap + i] : read_bits(input, tap, group * GROUP_C + 32 * i, count);
        const uint outside = PAD_BITS ? 0xffffffffu >> (32 - count) : 0u;
        d += popcount((inside ? found : outside) ^ weights[filter + i]);
      }
      filter += GROUP_WORDS;
    }
  }
  return d;
}

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 4, 1))) void bconv2d_grouped(
    int first_pixel, int end_pixel, __global const uint* restrict input, __global const uint* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  SHARED_BITS(GROUP_SIZE * 4)
  const int pixel = first_pixel + (int)get_global_id(0);
  const int channel = FIRST_CHANNEL + (int)get_global_id(1) * 8;
  const int has_bits = pixel < end_pixel && channel < END_CHANNEL;
  uint packed = 0;
  if (has_bits) {
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel), image = PIXEL_IMAGE(pixel) * (IN_H * IN_W * IN_WORDS);
    const int entries = TABLE_ENTRIES(borders, y, x), filters = min(8, END_CHANNEL - channel);
    for (int i = 0; i < filters; ++i) {
      const int filter = channel + i;
      const uint d = count_window(input, image, weights, filter * FILTER_WORDS, y, x, QUOTIENT(filter, GROUP_OUT_C));
      packed += finish1(d, table, entries, pixel, filter SINK_ARGS) << i;
    }
  }
  PUT_BITS(has_bits, ITEM_IN_GROUP, pixel, channel, packed)
  WAIT_FOR_BITS
  STORE_WORD(IS_FIRST_OF_WORD && has_bits, ITEM_IN_GROUP, GROUP_SIZE, pixel, QUOTIENT(channel, 32), packed)
}
