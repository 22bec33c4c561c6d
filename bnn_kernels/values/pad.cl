// @kernel   pad   the map with PAD_FLOAT around it
// @math     values[y][x] = input[y - PAD_TOP][x - PAD_LEFT] inside the map, PAD_FLOAT outside
// @args     int first_pixel, int end_pixel, void* input, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_C == OUT_C
// @ref      PAD   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"
#include "common/window.clh"

__kernel void pad(int first_pixel, int end_pixel, __global const void* restrict input, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  const int y = PIXEL_Y(pixel) - PAD_TOP, x = PIXEL_X(pixel) - PAD_LEFT, left = OUT_C - channel;
  float4 v = (float4)(PAD_FLOAT);
  // Not INSIDE: PADDED says nothing about this op, whose windows are single pixels.
  if ((uint)y < (uint)IN_H && (uint)x < (uint)IN_W) {
    const int from = (PIXEL_IMAGE(pixel) * IN_H + y) * IN_W + x;
    v = load_four(INPUT_HALF, input, from * OUT_C + channel, left, OUT_C);
  }
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, left, OUT_C, v);
}
