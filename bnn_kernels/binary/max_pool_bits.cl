// @kernel   max_pool_bits   max pool of packed bits, minimum where the channel's flip bit is 1
// @math     max of bits = OR; min = AND = not OR of not: out = flip ^ OR over taps inside the map of (in ^ flip)
// @args     int first_pixel, int end_pixel, uint* input, uint* flip_mask, SINK
// @geometry global = (roundup(pixels * ceil(channels / UNIT), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels UNIT
// @tune     UNIT {32,8} = 32   channels per work-item; 8: for parts of the channels that begin within a word
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over units of pixels
// @ref      MAX_POOL2D of BIT   @source PhoneBit IV (pooling of packed maps); flip mask: own
//
// Neighbouring work-items hold neighbouring units. HAS_FLIP is defined as 1 where flip_mask (IN_WORDS words, tail bits
// 0) is no dummy.
#include "common/sink.clh"
#include "common/window.clh"

#if UNIT == 8 && defined(CHANNEL_PARTS)
#define UNIT_BITS 8
typedef uchar unit_t;
#define STORE_UNIT(pixel, channel, unit) store_bytes(pixel, channel, 8, unit SINK_ARGS)
#else
#define UNIT_BITS 32
typedef uint unit_t;
#define STORE_UNIT(pixel, channel, unit) store_word(pixel, QUOTIENT(channel, 32), unit SINK_ARGS)
#endif
#define PIXEL_UNITS (IN_WORDS * 32 / UNIT_BITS)
#define PART_UNITS ((END_CHANNEL - FIRST_CHANNEL + UNIT_BITS - 1) / UNIT_BITS)

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void max_pool_bits(
    int first_pixel, int end_pixel, __global const unit_t* restrict input,
    __global const unit_t* restrict flip_mask SINK_PARAMS) {
  const int item = first_pixel * PART_UNITS + (int)get_global_id(0);
  if (item >= end_pixel * PART_UNITS) return;
  const int pixel = QUOTIENT(item, PART_UNITS), channel = FIRST_CHANNEL + REMAINDER(item, PART_UNITS) * UNIT_BITS;
  const int unit = QUOTIENT(channel, UNIT_BITS);
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  const int image = PIXEL_IMAGE(pixel) * (IN_H * IN_W * PIXEL_UNITS) + unit;
  const unit_t flip = HAS_FLIP ? flip_mask[unit] : 0;
  unit_t largest = 0;
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x, kx);
      const int inside = INSIDE(in_y, in_x);
      const unit_t found = input[image + (inside ? (in_y * IN_W + in_x) * PIXEL_UNITS : 0)];
      largest |= inside ? found ^ flip : 0;
    }
  }
  STORE_UNIT(pixel, channel, largest ^ flip);
}
