// @kernel   resize_bicubic   the map in another size, interpolated along columns, then along rows
// @math     at = (y + 0.5) IN_H / OUT_H - 0.5, AT_CORNERS 1: y (IN_H - 1) / (OUT_H - 1); the four nearest pixels, clamped to the map, by Keys' cubic of a = -0.75
// @args     int first_pixel, int end_pixel, void* input, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_C == OUT_C
// @ref      RESIZE_BICUBIC, RESIZE_BICUBIC_CORNERS   @source own
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
  return at - 0.5f;
}

// Of a pixel at a distance below 1, and of one at a distance from 1 to 2.
float near_weight(float x) {
  float w = 1.25f * x;
  w = w - 2.25f;
  w = w * x;
  w = w * x;
  return w + 1.0f;
}

float far_weight(float x) {
  float w = -0.75f * x;
  w = w + 3.75f;
  w = w * x;
  w = w - 6.0f;
  w = w * x;
  return w + 3.0f;
}

float4 weights_at(float share) {
  const float rest = 1.0f - share;
  return VECTOR_4(float, far_weight(share + 1.0f), near_weight(share), near_weight(rest), far_weight(rest + 1.0f));
}

float4 mean_of(float4 a, float4 b, float4 c, float4 d, float4 weight) {
  a = a * weight.x;
  b = b * weight.y;
  c = c * weight.z;
  d = d * weight.w;
  a = a + b;
  a = a + c;
  return a + d;
}

__kernel void resize_bicubic(int first_pixel, int end_pixel, __global const void* restrict input, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  const float y = old_place(PIXEL_Y(pixel), IN_H, OUT_H), x = old_place(PIXEL_X(pixel), IN_W, OUT_W);
  const float4 weight_x = weights_at(x - floor(x));
  const int top = (int)floor(y) - 1, left = (int)floor(x) - 1;
  const int image = PIXEL_IMAGE(pixel) * IN_H, rest = OUT_C - channel;
  float4 line[4];
#define OLD_PIXEL(row, column) \
  load_four(INPUT_HALF, input, ((image + (row)) * IN_W + clamp(column, 0, IN_W - 1)) * OUT_C + channel, rest, OUT_C)
  for (int i = 0; i < 4; i++) {
    const int row = clamp(top + i, 0, IN_H - 1);
    line[i] = mean_of(OLD_PIXEL(row, left), OLD_PIXEL(row, left + 1), OLD_PIXEL(row, left + 2), OLD_PIXEL(row, left + 3), weight_x);
  }
  const float4 mean = mean_of(line[0], line[1], line[2], line[3], weights_at(y - floor(y)));
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, rest, OUT_C, mean);
}
