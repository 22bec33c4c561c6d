// @kernel   conv2d_u8_pairs   convolution of u8 pixels with weights of +1/-1; a register adds up the taps of two pixels
// @math     acc = sum w * (INPUT_MUL x + INPUT_ADD) over taps inside the map; THRESHOLD: bit = acc >= table[c]
// @args     int first_pixel, int end_pixel, uchar* input, int* weights, int* table, SINK
// @weights  signs: int [KERNEL_H*KERNEL_W*IN_C][32 * OUT_WORDS], +1 or -1; filters from OUT_C on are 0
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS) * ceil(roundup(channels, CHANNEL_UNIT) / TILE_FILTERS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {2,4,8} = 4   output pixels per work-item
// @tune     TILE_FILTERS {4,8,16,32} = 16   output channels per work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == 1; KERNEL_W * IN_C <= 64; |INPUT_MUL x + INPUT_ADD| <= 255; TILE_FILTERS >= 8 where HAS_BITS or THRESHOLD
// @ref      CONV2D of u8   @source own
//
// The values v0, v1 of a tap in two pixels make one number, v0 + v1 2^15, and one product with a weight is for both:
// the number is below 2^23, so mad24 multiplies it. Sums of up to 64 products stay within their fields (64 * 255 <
// 2^14): as many rows of the window as have that many taps are added up before the fields are taken apart.
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define PAIRS (TILE_PIXELS / 2)
#define FIELD 15
#define LOWER(sums) ((sums) << (32 - FIELD) >> (32 - FIELD))
#define UPPER(sums) (((sums) + (1 << (FIELD - 1))) >> FIELD)

#define CHUNK_ROWS (64 / (KERNEL_W * IN_C))
#ifdef MODULE
#define IS_ONE_CHUNK 0
#else
#define IS_ONE_CHUNK (CHUNK_ROWS >= KERNEL_H)
#endif
#if IS_ONE_CHUNK  // no loop: compilers do not always see that it runs once
#define FOR_EACH_CHUNK(begin) const int begin = 0;
#define CHUNK_END(begin) KERNEL_H
#else
#define FOR_EACH_CHUNK(begin) for (int begin = 0; begin < KERNEL_H; begin += CHUNK_ROWS)
#define CHUNK_END(begin) min(begin + CHUNK_ROWS, KERNEL_H)
#endif

__kernel void conv2d_u8_pairs(
    int first_pixel, int end_pixel, __global const uchar* restrict input, __global const int* restrict weights,
                              __global const int* restrict table SINK_PARAMS) {
  SHARED_TILES(TILE_PIXELS)
  const int id = get_global_id(0);
  const int pixel0 = first_pixel + QUOTIENT(id, CHANNEL_TILES) * TILE_PIXELS;
  const int filter0 = FIRST_CHANNEL + REMAINDER(id, CHANNEL_TILES) * TILE_FILTERS;
  if (!SHARES_WORDS && pixel0 >= end_pixel) return;

  // Pixels follow each other, so divisions are made once. One beyond the last repeats it; its results go nowhere.
  int row[TILE_PIXELS], column[TILE_PIXELS], origin[TILE_PIXELS];
  const int first = min(pixel0, end_pixel - 1);
  int image = PIXEL_IMAGE(first), y = PIXEL_Y(first), x = PIXEL_X(first);
  int4 sum[TILE_PIXELS][TILE_VECTORS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    row[p] = y * STRIDE_H - PAD_TOP;
    column[p] = x * STRIDE_W - PAD_LEFT;
    origin[p] = ((image * IN_H + row[p]) * IN_W + column[p]) * IN_C;
    const int is_last = pixel0 + p + 1 >= end_pixel, ends_row = !is_last && x == OUT_W - 1;
    const int ends_image = ends_row && y == OUT_H - 1;
    x = ends_row ? 0 : is_last ? x : x + 1;
    y = ends_image ? 0 : ends_row ? y + 1 : y;
    image = ends_image ? image + 1 : image;
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] = (int4)(0);
  }
  int filter_at = filter0;
  FOR_EACH_CHUNK(begin) {
    int4 both[PAIRS][TILE_VECTORS];
#pragma unroll
    for (int q = 0; q < PAIRS; q++) {
#pragma unroll
      for (int v = 0; v < TILE_VECTORS; v++) both[q][v] = (int4)(0);
    }
    for (int ky = begin; ky < CHUNK_END(begin); ky++) {
      for (int kx = 0; kx < KERNEL_W; kx++) {
        // A padded tap reads the map's first element and counts it 0 times.
        int from[TILE_PIXELS], mul[TILE_PIXELS], add[PAIRS];
#pragma unroll
        for (int p = 0; p < TILE_PIXELS; p++) {
          const int scale = p % 2 == 0 ? 1 : 1 << FIELD;
          const int inside = INSIDE(row[p] + ky * DILATION_H, column[p] + kx * DILATION_W);
          const int place = origin[p] + (ky * DILATION_H * IN_W + kx * DILATION_W) * IN_C;
          from[p] = inside ? place : 0;
          mul[p] = inside ? INPUT_MUL * scale : 0;
          const int added = inside ? INPUT_ADD * scale : 0;
          add[p / 2] = p % 2 == 0 ? added : add[p / 2] + added;
        }
        for (int c = 0; c < IN_C; c++) {
          int4 weight[TILE_VECTORS];
#pragma unroll
          for (int v = 0; v < TILE_VECTORS; v++) weight[v] = LOAD_4(int, weights, filter_at + 4 * v);
          filter_at += TABLE_C;
#pragma unroll
          for (int q = 0; q < PAIRS; q++) {
            const int lower = mad24((int)input[from[2 * q] + c], mul[2 * q], add[q]);
            const int pair = mad24((int)input[from[2 * q + 1] + c], mul[2 * q + 1], lower);
#pragma unroll
            for (int v = 0; v < TILE_VECTORS; v++) both[q][v] = mad24((int4)(pair), weight[v], both[q][v]);
          }
        }
      }
    }
#pragma unroll
    for (int q = 0; q < PAIRS; q++) {
#pragma unroll
      for (int v = 0; v < TILE_VECTORS; v++) {
        sum[2 * q][v] += LOWER(both[q][v]);
        sum[2 * q + 1][v] += UPPER(both[q][v]);
      }
    }
  }

  uint packed[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#ifdef THRESHOLD
    packed[p] = 0;
#else
    float4 results[TILE_VECTORS];
#endif
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
#ifdef THRESHOLD
      const int4 acc = sum[p][v], minimum = LOAD_4(int, table, filter0 + 4 * v);
      packed[p] += (acc.x >= minimum.x ? 1u << (4 * v) : 0u) + (acc.y >= minimum.y ? 2u << (4 * v) : 0u) +
                (acc.z >= minimum.z ? 4u << (4 * v) : 0u) + (acc.w >= minimum.w ? 8u << (4 * v) : 0u);
#else
      results[v] = convert_float4(sum[p][v]);
#endif
    }
#ifndef THRESHOLD
    packed[p] = pixel0 + p < end_pixel ? finish_tile(results, pixel0 + p, filter0 SINK_ARGS) : 0;
#endif
  }
  STORE_TILES(TILE_PIXELS, pixel0, filter0, packed)
}
