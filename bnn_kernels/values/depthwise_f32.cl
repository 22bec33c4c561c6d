// @kernel   depthwise_f32   float convolution with one filter per channel
// @math     sum over taps inside the map of x * w: one chain of fma in (kh, kw) order from 0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  [KERNEL_H][KERNEL_W][OUT_C] float
// @geometry global = (roundup(pixels * ceil(roundup(OUT_C, CHANNEL_UNIT) / TILE_CHANNELS), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     TILE_CHANNELS {4,8,16} = 8   channels per work-item
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == IN_C == OUT_C; TILE_CHANNELS >= 8 where HAS_BITS
// @ref      CONV2D of float values   @source own
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

__kernel void depthwise_f32(int first_pixel, int end_pixel, __global const void* restrict input,
                            __global const float* restrict weights SINK_PARAMS) {
  SHARED_TILES(1)
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * TILE_CHANNELS;
  uint packed[1];
  packed[0] = 0;
  if (pixel < end_pixel) {
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel), image = PIXEL_IMAGE(pixel) * (IN_H * IN_W);

    float4 results[TILE_VECTORS];
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) results[v] = (float4)(0.0f);
    for (int ky = 0; ky < KERNEL_H; ky++) {
      for (int kx = 0; kx < KERNEL_W; kx++) {
        const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
        if (!INSIDE(in_y, in_x)) continue;
        const int from = (image + in_y * IN_W + in_x) * OUT_C, filter = (ky * KERNEL_W + kx) * OUT_C;
#pragma unroll
        for (int v = 0; v < TILE_VECTORS; v++) {
          const int c = channel + 4 * v;
          if (HAS_OVERHANG && c >= OUT_C) continue;
          const float4 tap = load_four(INPUT_HALF, input, from + c, OUT_C - c, OUT_C);
          const float4 weight = load_four(0, weights, filter + c, OUT_C - c, OUT_C);
          results[v] = MULTIPLY_ADD(tap, weight, results[v]);
        }
      }
    }
    packed[0] = finish_tile(results, pixel, channel SINK_ARGS);
  }
  STORE_TILES(1, pixel, channel, packed)
}
