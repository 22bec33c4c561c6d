// @kernel   conv2d_f32_grouped   float convolution with any number of groups: a pixel and TILE_FILTERS filters per work-item
// @math     sum over taps and the group's channels of x * w: one chain of fma in (kh, kw, cin) order from 0, padded taps as +0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  as in the file: float [OUT_C][KERNEL_H][KERNEL_W][IN_C / GROUPS]
// @geometry global = (roundup(pixels * ceil(roundup(OUT_C, CHANNEL_UNIT) / TILE_FILTERS), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     TILE_FILTERS {4,8,16} = 8   output channels per work-item
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires TILE_FILTERS >= 8 where HAS_BITS
// @ref      CONV2D of float values   @source own
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define GROUP_IN_C (IN_C / GROUPS)
#define GROUP_OUT_C (OUT_C / GROUPS)
#define FILTER_TAPS (KERNEL_H * KERNEL_W * GROUP_IN_C)

__kernel void conv2d_f32_grouped(int first_pixel, int end_pixel, __global const void* restrict input,
                                 __global const float* restrict weights SINK_PARAMS) {
  SHARED_TILES(1)
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), filter0 = REMAINDER(id, CHANNEL_TILES) * TILE_FILTERS;
  uint packed[1];
  packed[0] = 0;
  if (pixel < end_pixel) {
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel), image = PIXEL_IMAGE(pixel) * (IN_H * IN_W);

    int filter[TILE_FILTERS], first[TILE_FILTERS];  // where its weights and its group's channels begin
    float sum[TILE_FILTERS];
#pragma unroll
    for (int f = 0; f < TILE_FILTERS; f++) {
      // Filters beyond the last one repeat it; their results go nowhere.
      const int c = min(filter0 + f, OUT_C - 1);
      filter[f] = c * FILTER_TAPS;
      first[f] = QUOTIENT(c, GROUP_OUT_C) * GROUP_IN_C;
      sum[f] = 0.0f;
    }
    int tap = 0;
    for (int ky = 0; ky < KERNEL_H; ky++) {
      for (int kx = 0; kx < KERNEL_W; kx++) {
        const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
        const int inside = INSIDE(in_y, in_x);
        const int from = inside ? (image + in_y * IN_W + in_x) * IN_C : 0;
        for (int c = 0; c < GROUP_IN_C; c++, tap++) {
#pragma unroll
          for (int f = 0; f < TILE_FILTERS; f++) {
            const float loaded = LOAD_VALUE(INPUT_HALF, input, from + first[f] + c);
            sum[f] = MULTIPLY_ADD(inside ? loaded : 0.0f, weights[filter[f] + tap], sum[f]);
          }
        }
      }
    }
    float4 results[TILE_VECTORS];
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
      results[v] = VECTOR_4(float, sum[4 * v], sum[4 * v + 1], sum[4 * v + 2], sum[4 * v + 3]);
    }
    packed[0] = finish_tile(results, pixel, filter0 SINK_ARGS);
  }
  STORE_TILES(1, pixel, filter0, packed)
}
