// @kernel   bconv2d_split   binary convolution with few output pixels and long windows: lanes of a group split K
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  canonical
// @geometry global = (GROUP_SIZE * ceil(channels / 32), pixels), local = (GROUP_SIZE, 1)
// @channels 32
// @tune     TILE_FILTERS {1,2,4} = 1   filters per work-item; a group makes 32 bits of one pixel
// @tune     VECTOR_WORDS {1,2,4} = 4   words per load, halved until they divide IN_WORDS
// @tune     GROUP_SIZE {32,64,128,256,512} = 256   work-items per group; TILE_FILTERS / 32 of them share their filters
// @requires GROUPS = 1; local memory of 4 * GROUP_SIZE * TILE_FILTERS + 32 bytes
// @ref      BINARY_CONV2D   @source own
#include "common/split_k.clh"

#define WINDOW_VECTORS (KERNEL_H * KERNEL_W * PIXEL_VECTORS)
// LANES vectors further in the window, as steps of (ky, kx, q) with one carry each: no division in the loop.
#define STEP_Q (LANES % PIXEL_VECTORS)
#define STEP_KX (LANES / PIXEL_VECTORS % KERNEL_W)
#define STEP_KY (LANES / PIXEL_VECTORS / KERNEL_W)

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bconv2d_split(
    int first_pixel, int end_pixel, __global const words_t* restrict input, __global const words_t* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  __local uint partial[32 * LANES];
  __local uint quad_bits[8];
  const int slot = QUOTIENT(get_local_id(0), LANES), lane = REMAINDER(get_local_id(0), LANES);
  const int channel = FIRST_CHANNEL + (int)get_group_id(0) * 32;
  const int pixel = first_pixel + (int)get_global_id(1);
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  const int image = PIXEL_IMAGE(pixel) * (IN_H * IN_W * PIXEL_VECTORS);
  uint counts[TILE_FILTERS];
  int filter_at[TILE_FILTERS];
  REPEAT(TILE_FILTERS, START_FILTER, WINDOW_VECTORS)

  const int tap = QUOTIENT(lane, PIXEL_VECTORS);
  int q = REMAINDER(lane, PIXEL_VECTORS), kx = REMAINDER(tap, KERNEL_W), ky = QUOTIENT(tap, KERNEL_W);
  for (int at = lane; at < WINDOW_VECTORS; at += LANES) {
    const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
    const int inside = INSIDE(in_y, in_x);
    const words_t map_words =
        choose_words(inside, input[image + (inside ? (in_y * IN_W + in_x) * PIXEL_VECTORS + q : 0)], PAD_WORDS(q));
    REPEAT(TILE_FILTERS, COUNT_FILTER, 0)
    q += STEP_Q;
    kx += STEP_KX;
    ky += STEP_KY;
    if (q >= PIXEL_VECTORS) {
      q -= PIXEL_VECTORS;
      ++kx;
    }
    if (kx >= KERNEL_W) {
      kx -= KERNEL_W;
      ++ky;
    }
  }
  REPEAT(TILE_FILTERS, SHARE_COUNT, 0)
  finish_group(partial, quad_bits, table, TABLE_ENTRIES(borders, y, x), pixel, channel SINK_ARGS);
}
