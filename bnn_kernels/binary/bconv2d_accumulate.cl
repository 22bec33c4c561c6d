// @kernel   bconv2d_accumulate   binary convolution to 32-bit accumulators, for wide layers whose bits pack_thresholds makes
// @math     acc = base - 2 d (common/counts.clh), d = popcount(in ^ w) over all taps, padded ones as PAD_BITS
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, int* accumulators
// @weights  canonical
// @geometry global = (roundup(pixels, GROUP_SIZE), OUT_C), local = (GROUP_SIZE, 1)
// @tune     VECTOR_WORDS {1,2,4} = 4   words per load, halved until they divide IN_WORDS
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over pixels
// @requires THRESHOLD; GROUPS = 1; the table holds bases
// @ref      BINARY_CONV2D   @source PhoneBit VI-B (more than 256 channels: a work-item computes one filter, bits are packed separately)
#include "common/words.clh"
#include "common/counts.clh"

// accumulators: [pixels of the batch][OUT_C].
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bconv2d_accumulate(
    int first_pixel, int end_pixel, __global const words_t* restrict input, __global const words_t* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders, __global int* restrict accumulators) {
  const int pixel = first_pixel + (int)get_global_id(0);
  const int channel = get_global_id(1);
  if (pixel >= end_pixel) return;
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  PLACE_IN(words_t, filter, weights, channel * (KERNEL_H * KERNEL_W * PIXEL_VECTORS));
  uint d = 0;
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x, kx);
      const int inside = INSIDE(in_y, in_x);
      const int tap = inside ? ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * PIXEL_VECTORS : 0;
      for (int q = 0; q < PIXEL_VECTORS; ++q) {
        d += count_bits(choose_words(inside, input[tap + q], PAD_WORDS(q)) ^ READ_AT(weights, filter, q));
      }
      filter += PIXEL_VECTORS;
    }
  }
  accumulators[pixel * OUT_C + channel] = table[TABLE_ENTRIES(borders, y, x) + channel] - 2 * (int)d;
}
