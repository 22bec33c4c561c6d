// @kernel   bgemv   binary dense layer, bit matrix x bit vector: lanes of a group split K
// @math     d = popcount(in ^ w) over the whole map; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  canonical
// @geometry global = (GROUP_SIZE * ceil(channels / 32), pixels), local = (GROUP_SIZE, 1)
// @channels 32
// @tune     TILE_FILTERS {1,2,4} = 1   filters per work-item; a group makes 32 bits of one image
// @tune     VECTOR_WORDS {1,2,4} = 4   words per load, halved until they divide IN_WORDS
// @tune     GROUP_SIZE {32,64,128,256,512} = 256   work-items per group; TILE_FILTERS / 32 of them share their filters
// @requires GROUPS = 1; OUT_H = OUT_W = 1; KERNEL_H = IN_H; KERNEL_W = IN_W; PADDED 0; DILATION 1 along axes longer than 1; local memory of 4 * GROUP_SIZE * TILE_FILTERS + 32 bytes
// @ref      BINARY_CONV2D   @source own
#include "common/split_k.clh"

// The window is the image, so that both its words and a filter's lie one after the other: neighbouring lanes read
// neighbouring vectors, and each weight is read once per image (which is what this layer's time consists of).
#define IMAGE_VECTORS (IN_H * IN_W * PIXEL_VECTORS)

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bgemv(
    int first_pixel, int end_pixel, __global const words_t* restrict input, __global const words_t* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  __local uint partial[32 * LANES];
  __local uint quad_bits[8];
  const int slot = QUOTIENT(get_local_id(0), LANES), lane = REMAINDER(get_local_id(0), LANES);
  const int channel = FIRST_CHANNEL + (int)get_group_id(0) * 32;
  const int image = first_pixel + (int)get_global_id(1);
  uint counts[TILE_FILTERS];
  int filter_at[TILE_FILTERS];
  REPEAT(TILE_FILTERS, START_FILTER, IMAGE_VECTORS)
  for (int at = lane; at < IMAGE_VECTORS; at += LANES) {
    const words_t map_words = input[image * IMAGE_VECTORS + at];
    REPEAT(TILE_FILTERS, COUNT_FILTER, 0)
  }
  REPEAT(TILE_FILTERS, SHARE_COUNT, 0)
  finish_group(partial, quad_bits, table, 0, image, channel SINK_ARGS);
}
