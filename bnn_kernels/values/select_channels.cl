// @kernel   select_channels   slices, splits, shuffles and channels of zeros
// @math     values[pixel][c] = indices[c] < 0 ? 0 : input[pixel][indices[c]]
// @args     int first_pixel, int end_pixel, void* input, int* indices, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_H == OUT_H; IN_W == OUT_W
// @ref      SELECT_CHANNELS   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"

float selected(__global const void* restrict input, int first, int index) {
  return index < 0 ? 0.0f : LOAD_VALUE(INPUT_HALF, input, first + index);
}

__kernel void select_channels(
    int first_pixel, int end_pixel, __global const void* restrict input, __global const int* restrict indices,
                              __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  const int first = pixel * IN_C, last = OUT_C - 1;
  // Beyond the last channel its index is read again; what it selects is not stored.
  const float4 v = VECTOR_4(float, selected(input, first, indices[channel]), selected(input, first, indices[min(channel + 1, last)]),
                            selected(input, first, indices[min(channel + 2, last)]),
                            selected(input, first, indices[min(channel + 3, last)]));
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, OUT_C - channel, OUT_C, v);
}
