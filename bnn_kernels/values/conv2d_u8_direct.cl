// @kernel   conv2d_u8_direct   convolution of u8 pixels with weights of +1/-1; registers hold TILE_PIXELS x TILE_FILTERS sums
// @math     acc = sum w * (INPUT_MUL x + INPUT_ADD) over taps inside the map; THRESHOLD: bit = acc >= table[c]
// @args     int first_pixel, int end_pixel, uchar* input, uint* weights, int* table, SINK
// @weights  canonical
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS) * ceil(roundup(channels, CHANNEL_UNIT) / TILE_FILTERS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4} = 2   output pixels per work-item
// @tune     TILE_FILTERS {4,8,16,32} = 8   output channels per work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires TILE_FILTERS >= 8 where HAS_BITS or THRESHOLD
// @ref      CONV2D of u8   @source own
//
// The value of a tap is made once and used by all filters; padded taps are 0 after INPUT_ADD. Where no sum can reach
// 2^24 sums are floats: exact in any order, and multiply-adds run at full rate everywhere, which integer ones do not.
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define GROUP_IN_C (IN_C / GROUPS)
#define TAP_WORDS ((GROUP_IN_C + 31) / 32)
#define FILTER_WORDS (KERNEL_H * KERNEL_W * TAP_WORDS)

#define MAGNITUDE(v) ((v) < 0 ? -(v) : (v))
#ifdef MODULE
#define SUMS_ARE_FLOATS 0
#else
#define SUMS_ARE_FLOATS \
  (KERNEL_H * KERNEL_W * (IN_C / GROUPS) * (255 * MAGNITUDE(INPUT_MUL) + MAGNITUDE(INPUT_ADD)) < 16777216)
#endif
#if SUMS_ARE_FLOATS
typedef float Sum;
// +1.0f or -1.0f with the sign from bit i.
#define WEIGHT(word, i) as_float(0xbf800000u ^ (((word) << (31 - (i))) & 0x80000000u))
#define ADD_TAP(x, weight, sum) mad(x, weight, sum)
#else
typedef int Sum;
#define WEIGHT(word, i) ((word) >> (i) & 1u)
#define ADD_TAP(x, weight, sum) ((weight) ? (sum) + (x) : (sum) - (x))
#endif

#define TAP_VALUE(place, c) \
  (IS_PADDED(place) ? (Sum)0 : (Sum)input[READABLE(place) + (c)] * (Sum)(INPUT_MUL) + (Sum)(INPUT_ADD))
#define FILTER(f) (HAS_OVERHANG ? min(filter0 + (f), OUT_C - 1) : filter0 + (f))

__kernel void conv2d_u8_direct(
    int first_pixel, int end_pixel, __global const uchar* restrict input, __global const uint* restrict weights,
                               __global const int* restrict table SINK_PARAMS) {
  SHARED_TILES(TILE_PIXELS)
  const int id = get_global_id(0);
  const int pixel0 = first_pixel + QUOTIENT(id, CHANNEL_TILES) * TILE_PIXELS;
  const int filter0 = FIRST_CHANNEL + REMAINDER(id, CHANNEL_TILES) * TILE_FILTERS;
  if (!SHARES_WORDS && pixel0 >= end_pixel) return;

  int row[TILE_PIXELS], column[TILE_PIXELS], origin[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    // Pixels and filters beyond the last ones repeat it; their results go nowhere.
    const int pixel = min(pixel0 + p, end_pixel - 1);
    row[p] = PIXEL_Y(pixel) * STRIDE_H - PAD_TOP;
    column[p] = PIXEL_X(pixel) * STRIDE_W - PAD_LEFT;
    origin[p] = ((PIXEL_IMAGE(pixel) * IN_H + row[p]) * IN_W + column[p]) * IN_C;
  }
  Sum sum[TILE_PIXELS][TILE_FILTERS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
    for (int f = 0; f < TILE_FILTERS; f++) sum[p][f] = 0;
  }
  int at_word = 0;
  for (int ky = 0; ky < KERNEL_H; ky++) {
    for (int kx = 0; kx < KERNEL_W; kx++) {
      int from[TILE_PIXELS];  // -1: padded
#pragma unroll
      for (int p = 0; p < TILE_PIXELS; p++) {
        const int inside = INSIDE(row[p] + ky * DILATION_H, column[p] + kx * DILATION_W);
        from[p] = inside ? origin[p] + (ky * DILATION_H * IN_W + kx * DILATION_W) * IN_C : -1;
      }
      for (int c0 = 0; c0 < GROUP_IN_C; c0 += 32, at_word++) {
        uint word[TILE_FILTERS];
#pragma unroll
        for (int f = 0; f < TILE_FILTERS; f++) word[f] = weights[FILTER(f) * FILTER_WORDS + at_word];
        const int count = min(GROUP_IN_C - c0, 32);
        for (int i = 0; i < count; i++) {
          Sum v[TILE_PIXELS];
#pragma unroll
          for (int p = 0; p < TILE_PIXELS; p++) v[p] = GROUPS == 1 ? TAP_VALUE(from[p], c0 + i) : (Sum)0;
#pragma unroll
          for (int f = 0; f < TILE_FILTERS; f++) {
#pragma unroll
            for (int p = 0; p < TILE_PIXELS; p++) {
              const Sum tap =
                  GROUPS == 1 ? v[p] : TAP_VALUE(from[p], QUOTIENT(FILTER(f), OUT_C / GROUPS) * GROUP_IN_C + c0 + i);
              sum[p][f] = ADD_TAP(tap, WEIGHT(word[f], i), sum[p][f]);
            }
          }
        }
      }
    }
  }

  uint packed[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#ifdef THRESHOLD
    packed[p] = 0;
#pragma unroll
    for (int f = 0; f < TILE_FILTERS; f++) packed[p] |= (int)sum[p][f] >= table[filter0 + f] ? 1u << f : 0u;
#else
    float4 results[TILE_VECTORS];
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
      results[v] = VECTOR_4(float, sum[p][4 * v], sum[p][4 * v + 1], sum[p][4 * v + 2], sum[p][4 * v + 3]);
    }
    packed[p] = pixel0 + p < end_pixel ? finish_tile(results, pixel0 + p, filter0 SINK_ARGS) : 0;
#endif
  }
  STORE_TILES(TILE_PIXELS, pixel0, filter0, packed)
}
