// @kernel   resize_bilinear   the map in another size, interpolated along columns, then along rows
// @math     at = max((y + 0.5) IN_H / OUT_H - 0.5, 0), AT_CORNERS 1: y (IN_H - 1) / (OUT_H - 1); low = floor(at), share = at - low; between a and b: a + (b - a) share
// @args     int first_pixel, int end_pixel, void* input, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_C == OUT_C
// @ref      RESIZE_BILINEAR, RESIZE_BILINEAR_CORNERS   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"
#include "common/window.clh"
#pragma OPENCL FP_CONTRACT OFF

// Where a place of an axis lies in the old one; scale is rounded once, by the compiler or here.
float old_place(int place, int in, int out) {
  if (AT_CORNERS) {
    const float corner_scale = (float)(in - 1) / (float)max(out - 1, 1);
    return (float)place * corner_scale;
  }
  const float scale = (float)in / (float)out;
  float at = (float)place + 0.5f;
  at = at * scale;
  at = at - 0.5f;
  return at > 0.0f ? at : 0.0f;
}

float4 between(float4 a, float4 b, float share) {
  float4 difference = b - a;
  difference = difference * share;
  return a + difference;
}

__kernel void resize_bilinear(int first_pixel, int end_pixel, __global const void* restrict input, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  const float y = old_place(PIXEL_Y(pixel), IN_H, OUT_H), x = old_place(PIXEL_X(pixel), IN_W, OUT_W);
  const int top = min((int)y, IN_H - 1), bottom = min(top + 1, IN_H - 1);
  const int left = min((int)x, IN_W - 1), right = min(left + 1, IN_W - 1);
  const float share_y = y - (float)top, share_x = x - (float)left;
  const int image = PIXEL_IMAGE(pixel) * IN_H, rest = OUT_C - channel;
#define OLD_PIXEL(row, column) \
  load_four(INPUT_HALF, input, ((image + (row)) * IN_W + (column)) * OUT_C + channel, rest, OUT_C)
  const float4 upper = between(OLD_PIXEL(top, left), OLD_PIXEL(top, right), share_x);
  const float4 lower = between(OLD_PIXEL(bottom, left), OLD_PIXEL(bottom, right), share_x);
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, rest, OUT_C, between(upper, lower, share_y));
}
