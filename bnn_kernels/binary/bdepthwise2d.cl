// @kernel   bdepthwise2d   binary depthwise convolution, 32 channels per work-item in bit-sliced counters
// @math     d[c] = number of taps whose bits differ, padded taps as PAD_BITS; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  [KERNEL_H][KERNEL_W][IN_WORDS]
// @geometry global = (roundup(pixels*OUT_WORDS, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items per group, over words of pixels
// @requires GROUPS = IN_C = OUT_C
// @ref      BINARY_DEPTHWISE_CONV2D   @source own
//
// The table has a row for each border class, as that of other convolutions with one input channel per filter:
//   base = taps - sum over padded taps of (1 - 2 w), limit = floor((base - T) / 2) + 1.
#include "common/words.clh"
#include "common/counts.clh"

// Bit c of plane b is bit b of channel c's count, so that one addition counts for 32 channels: adding a word x of
// differences is a ripple of half adders, plane' = plane ^ x, x' = plane & x.
#define HAS_NIBBLE(n) ((n) < (KERNEL_H * KERNEL_W < 16 ? 1 : KERNEL_H * KERNEL_W < 256 ? 2 : 8))
#define ADD_TO_NIBBLE(n, a) \
  if (HAS_NIBBLE(n)) planes[n] = add_nibble(planes[n], &carry);
#define CLEAR_NIBBLE(n, a) planes[n] = (uint4)(0);

uint4 add_nibble(uint4 plane, uint* carry) {
  const uint c0 = *carry, c1 = plane.x & c0, c2 = plane.y & c1, c3 = plane.z & c2;
  *carry = plane.w & c3;
  return plane ^ VECTOR_4(uint, c0, c1, c2, c3);
}

// Four planes to counts: nibble j of word k of the result is the count of channel 4 j + k.
uint4 transpose_nibble(uint4 plane) {
  const uint4 k = VECTOR_4(uint, 0, 1, 2, 3);
  const uint4 ones = (uint4)(0x11111111u);
  return ((plane.xxxx >> k) & ones) + (((plane.yyyy >> k) & ones) << 1) + (((plane.zzzz >> k) & ones) << 2) +
         (((plane.wwww >> k) & ones) << 3);
}
#define TRANSPOSE_NIBBLE(n, a) \
  if (HAS_NIBBLE(n)) planes[n] = transpose_nibble(planes[n]);

// Counts of channels 4 j ... 4 j + 3.
#define NIBBLE_AT(n, j) (((planes[n] >> (4 * (j))) & 15u) << (4 * (n)))
#define COUNTS_AT(j)                                                                         \
  (NIBBLE_AT(0, j) + NIBBLE_AT(1, j) + NIBBLE_AT(2, j) + NIBBLE_AT(3, j) + NIBBLE_AT(4, j) + \
   NIBBLE_AT(5, j) + NIBBLE_AT(6, j) + NIBBLE_AT(7, j))
#define FINISH_QUAD(j, a) packed = finish4(packed, COUNTS_AT(j), table, entries, pixel, 32 * word + 4 * (j) SINK_ARGS);

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bdepthwise2d(
    int first_pixel, int end_pixel, __global const uint* restrict input, __global const uint* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  const int item = first_pixel * OUT_WORDS + (int)get_global_id(0);
  if (item >= end_pixel * OUT_WORDS) return;
  const int pixel = QUOTIENT(item, OUT_WORDS), word = REMAINDER(item, OUT_WORDS);
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  const int image = PIXEL_IMAGE(pixel) * (IN_H * IN_W * IN_WORDS) + word;
  uint4 planes[8];
  REPEAT(8, CLEAR_NIBBLE, 0)
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x, kx);
      const int inside = INSIDE(in_y, in_x);
      const uint found = input[image + (inside ? (in_y * IN_W + in_x) * IN_WORDS : 0)];
      uint carry = (inside ? found : PAD_WORD(word)) ^ weights[(ky * KERNEL_W + kx) * IN_WORDS + word];
      REPEAT(8, ADD_TO_NIBBLE, 0)
    }
  }
  REPEAT(8, TRANSPOSE_NIBBLE, 0)
  const int entries = TABLE_ENTRIES(borders, y, x);
  uint packed = 0;
  REPEAT(8, FINISH_QUAD, 0)
  store_word(pixel, word, packed SINK_ARGS);
}
