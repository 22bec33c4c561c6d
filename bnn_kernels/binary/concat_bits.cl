// @kernel   concat_bits   copies one operand of a concatenation to bit CHANNEL_OFFSET of each output pixel
// @math     out bit CHANNEL_OFFSET + c = in bit c, c < IN_C
// @args     int first_pixel, int end_pixel, uint* input, uint* bits
// @geometry global = (roundup(pixels*(IN_WORDS + 1), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over output words
// @ref      CONCAT of BIT   @source own
//
// One launch per operand, in their order. Each clears the bits above its operand, which are tail bits after the last
// launch; the next one adds its own to them in the word that two operands share.
#include "common/dialect.clh"

#define SHIFT (CHANNEL_OFFSET % 32)
#define TOUCHED_WORDS ((SHIFT + IN_C + 31) / 32)

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void concat_bits(int first_pixel, int end_pixel,
                                                                                __global const uint* restrict input,
                                                                                __global uint* restrict bits) {
  const int item = first_pixel * TOUCHED_WORDS + (int)get_global_id(0);
  if (item >= end_pixel * TOUCHED_WORDS) return;
  const int pixel = QUOTIENT(item, TOUCHED_WORDS), i = REMAINDER(item, TOUCHED_WORDS);
  const int from = pixel * IN_WORDS + i, to = pixel * OUT_WORDS + CHANNEL_OFFSET / 32 + i;
  if (SHIFT == 0) {
    bits[to] = input[from];
  } else {
    const uint low = i > 0 ? input[from - 1] >> (32 - SHIFT) : bits[to];
    const uint high = i < IN_WORDS ? input[from] << SHIFT : 0u;
    bits[to] = low | high;
  }
}
