// @kernel   pool   maximum or average over the taps of a window that lie inside the map
// @math     POOL_MAX: most = x > most ? x : most from -inf on; else: (sum in row-major order) / taps, one division
// @args     int first_pixel, int end_pixel, void* input, SINK
// @geometry global = (roundup(pixels * ceil(channels / TILE_CHANNELS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_CHANNELS
// @tune     TILE_CHANNELS {4,8,16} = 8   channels a work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_C == OUT_C; TILE_CHANNELS >= 8 where HAS_BITS; every window has a tap inside the map
// @ref      MAX_POOL2D, AVERAGE_POOL2D of float values   @source own
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

__kernel void pool(int first_pixel, int end_pixel, __global const void* restrict input SINK_PARAMS) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = id / CHANNEL_TILES, channel = FIRST_CHANNEL + id % CHANNEL_TILES * TILE_CHANNELS;
  if (pixel >= end_pixel) return;
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel), image = PIXEL_IMAGE(pixel) * (IN_H * IN_W);

  float4 results[TILE_VECTORS];
#pragma unroll
  for (int v = 0; v < TILE_VECTORS; v++) results[v] = (float4)(POOL_MAX ? -INFINITY : 0.0f);
  int taps = 0;
  for (int ky = 0; ky < KERNEL_H; ky++) {
    for (int kx = 0; kx < KERNEL_W; kx++) {
      const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
      if (!INSIDE(in_y, in_x)) continue;
      taps++;
      const int from = (image + in_y * IN_W + in_x) * OUT_C;
#pragma unroll
      for (int v = 0; v < TILE_VECTORS; v++) {
        const int c = channel + 4 * v;
        if (TILES_OVERHANG(TILE_CHANNELS) && c >= END_CHANNEL) continue;
        const float4 tap = load_four(INPUT_HALF, input, from + c, OUT_C - c, OUT_C);
#if POOL_MAX
        // Not fmax: a NaN is passed over, as on the CPU.
        results[v] = select(results[v], tap, tap > results[v]);
#else
        results[v] += tap;
#endif
      }
    }
  }
#if !POOL_MAX
#pragma unroll
  for (int v = 0; v < TILE_VECTORS; v++) results[v] /= (float4)((float)taps);
#endif
  finish_tile(results, pixel, channel SINK_ARGS);
}
