// @kernel   conv2d_f32   float convolution; registers hold TILE_PIXELS x TILE_FILTERS sums
// @math     sum over taps and input channels of x * w: one chain of fma in (kh, kw, cin) order from 0, padded taps as +0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  [KERNEL_H*KERNEL_W*IN_C][4 * ceil(OUT_C / 4)] float, filters from OUT_C on are 0; half where ARITHMETIC is 1
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS) * ceil(roundup(channels, CHANNEL_UNIT) / TILE_FILTERS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4,8} = 2   output pixels per work-item
// @tune     TILE_FILTERS {4,8,16} = 8   output channels per work-item
// @tune     ARITHMETIC {0,1} = 0   1: half multiply-adds in chains of 16, added up as float: tolerance
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == 1; TILE_FILTERS >= 8 where HAS_BITS; ARITHMETIC 1: cl_khr_fp16 and IN_C % 4 == 0
// @ref      CONV2D of float values   @source own
//
// Neighbouring work-items hold neighbouring filters of the same pixels: they read weights and write results
// contiguously, and share what they read of the map.
#if ARITHMETIC
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#if ARITHMETIC
typedef half4 Vector;
#if INPUT_HALF
#define LOAD_FOUR_INPUTS(index) LOAD_HALVES(input, index)
#else
#define LOAD_FOUR_INPUTS(index) convert_half4(LOAD_VALUE4(0, input, index))
#endif
// Sums of halves stay short and small; 16 products cost one addition of floats.
#define CHAIN 16
#else
typedef float4 Vector;
#define LOAD_FOUR_INPUTS(index) \
  (IN_C % 4 == 0 ? LOAD_VALUE4(INPUT_HALF, input, index) : LOAD_VALUE4_ANYWHERE(INPUT_HALF, input, index))
#endif
#define FILTER_QUADS ((OUT_C + 3) / 4)

// Products of one input channel of all pixels.
#define ADD_CHANNEL(component)                                                                                  \
  {                                                                                                             \
    Vector weight[TILE_VECTORS];                                                                                \
    _Pragma("unroll") for (int v = 0; v < TILE_VECTORS; v++) weight[v] = weights[filter_at + quad[v]];          \
    filter_at += FILTER_QUADS;                                                                                  \
    _Pragma("unroll") for (int p = 0; p < TILE_PIXELS; p++) {                                                   \
      _Pragma("unroll") for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] =                                      \
          MULTIPLY_ADD((Vector)(x[p] component), weight[v], sum[p][v]);                                         \
    }                                                                                                           \
  }
// One of up to three channels after the last four. Text, because clspv does not structure a fourth nested loop validly.
#define ADD_LAST_CHANNEL(i)                                                                       \
  {                                                                                               \
    float x[TILE_PIXELS];                                                                         \
    _Pragma("unroll") for (int p = 0; p < TILE_PIXELS; p++) {                                     \
      const float loaded = LOAD_VALUE(INPUT_HALF, input, READABLE(from[p]) + IN_C / 4 * 4 + (i)); \
      x[p] = IS_PADDED(from[p]) ? 0.0f : loaded;                                                  \
    }                                                                                             \
    ADD_CHANNEL()                                                                                 \
  }

__kernel void conv2d_f32(
    int first_pixel, int end_pixel, __global const void* restrict input, __global const Vector* restrict weights SINK_PARAMS) {
  SHARED_TILES(TILE_PIXELS)
  const int id = get_global_id(0);
  const int pixel0 = first_pixel + QUOTIENT(id, CHANNEL_TILES) * TILE_PIXELS;
  const int filter0 = FIRST_CHANNEL + REMAINDER(id, CHANNEL_TILES) * TILE_FILTERS;
  if (!SHARES_WORDS && pixel0 >= end_pixel) return;

  int filter_at = 0;
  // Filters and pixels beyond the last one repeat it; their results go nowhere.
  int quad[TILE_VECTORS];
#pragma unroll
  for (int v = 0; v < TILE_VECTORS; v++) quad[v] = min(QUOTIENT(filter0, 4) + v, FILTER_QUADS - 1);
  int row[TILE_PIXELS], column[TILE_PIXELS], origin[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    const int pixel = min(pixel0 + p, end_pixel - 1);
    row[p] = PIXEL_Y(pixel) * STRIDE_H - PAD_TOP;
    column[p] = PIXEL_X(pixel) * STRIDE_W - PAD_LEFT;
    origin[p] = ((PIXEL_IMAGE(pixel) * IN_H + row[p]) * IN_W + column[p]) * IN_C;
  }

  Vector sum[TILE_PIXELS][TILE_VECTORS];
#if ARITHMETIC
  float4 whole[TILE_PIXELS][TILE_VECTORS];
#endif
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
      sum[p][v] = (Vector)(0);
#if ARITHMETIC
      whole[p][v] = (float4)(0.0f);
#endif
    }
  }
  for (int ky = 0; ky < KERNEL_H; ky++) {
    for (int kx = 0; kx < KERNEL_W; kx++) {
      int from[TILE_PIXELS];  // -1: padded
#pragma unroll
      for (int p = 0; p < TILE_PIXELS; p++) {
        const int inside = INSIDE(row[p] + ky * DILATION_H, column[p] + kx * DILATION_W);
        from[p] = inside ? origin[p] + (ky * DILATION_H * IN_W + kx * DILATION_W) * IN_C : -1;
      }
      for (int c = 0; c < IN_C / 4 * 4; c += 4) {
        Vector x[TILE_PIXELS];
#pragma unroll
        for (int p = 0; p < TILE_PIXELS; p++) {
          const Vector loaded = LOAD_FOUR_INPUTS(READABLE(from[p]) + c);
          x[p] = IS_PADDED(from[p]) ? (Vector)(0) : loaded;
        }
        ADD_CHANNEL(.x)
        ADD_CHANNEL(.y)
        ADD_CHANNEL(.z)
        ADD_CHANNEL(.w)
#if ARITHMETIC
        if ((c + 4) % CHAIN == 0 || c + 4 == IN_C) {
#pragma unroll
          for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
            for (int v = 0; v < TILE_VECTORS; v++) {
              whole[p][v] += convert_float4(sum[p][v]);
              sum[p][v] = (Vector)(0);
            }
          }
        }
#endif
      }
      if (IN_C % 4 > 0) ADD_LAST_CHANNEL(0)
      if (IN_C % 4 > 1) ADD_LAST_CHANNEL(1)
      if (IN_C % 4 > 2) ADD_LAST_CHANNEL(2)
    }
  }

#if ARITHMETIC
#define RESULTS whole
#else
#define RESULTS sum
#endif
  uint packed[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    packed[p] = pixel0 + p < end_pixel ? finish_tile(RESULTS[p], pixel0 + p, filter0 SINK_ARGS) : 0;
  }
  STORE_TILES(TILE_PIXELS, pixel0, filter0, packed)
}
