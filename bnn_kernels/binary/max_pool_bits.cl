// @kernel   max_pool_bits   max pool of packed bits, minimum where the channel's flip bit is 1
// @math     max of bits = OR; min = AND = not OR of not: out = flip ^ OR over taps inside the map of (in ^ flip)
// @args     int first_pixel, int end_pixel, uint* input, uint* flip_mask, uint* bits
// @geometry global = (roundup(pixels*OUT_WORDS, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items a group, over words of pixels
// @ref      MAX_POOL2D of BIT   @source PhoneBit IV (pooling of packed maps); flip mask: own
//
// Neighbouring work-items hold neighbouring words. HAS_FLIP is defined as 1 where flip_mask (IN_WORDS words, tail bits 0) is no dummy.
#include "common/window.clh"

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void max_pool_bits(
    int first_pixel, int end_pixel, __global const uint* restrict input, __global const uint* restrict flip_mask,
    __global uint* restrict bits) {
  const int item = first_pixel * IN_WORDS + (int)get_global_id(0);
  if (item >= end_pixel * IN_WORDS) return;
  const int pixel = item / IN_WORDS, word = item % IN_WORDS;
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  __global const uint* image = input + PIXEL_IMAGE(pixel) * (IN_H * IN_W * IN_WORDS) + word;
#if HAS_FLIP
  const uint flip = flip_mask[word];
#else
  const uint flip = 0u;
#endif
  uint largest = 0u;
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x, kx);
      const int inside = INSIDE(in_y, in_x);
      const uint found = image[inside ? (in_y * IN_W + in_x) * IN_WORDS : 0];
      largest |= inside ? found ^ flip : 0u;
    }
  }
  bits[item] = largest ^ flip;
}
