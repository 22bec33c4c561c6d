// @kernel   concat   copies one operand's channels to their place in the joined pixels; one launch per operand
// @math     values[pixel][CHANNEL_OFFSET + c] = input[pixel][c]
// @args     int first_pixel, int end_pixel, void* input, void* values
// @geometry global = (roundup(pixels * ceil(IN_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires CHANNEL_OFFSET + IN_C <= OUT_C; IN_H == OUT_H; IN_W == OUT_W
// @ref      CONCAT of float values   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"

#define QUADS ((IN_C + 3) / 4)

__kernel void concat(int first_pixel, int end_pixel, __global const void* restrict input, __global void* restrict values) {
  const int id = first_pixel * QUADS + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, QUADS), channel = REMAINDER(id, QUADS) * 4;
  if (pixel >= end_pixel) return;
  const int left = IN_C - channel;
  const float4 v = load_four(INPUT_HALF, input, pixel * IN_C + channel, left, IN_C);
  // Aligned stores need both the pixel's length and the place in it to be multiples of 4.
  const int step = (OUT_C | CHANNEL_OFFSET | IN_C) % 4 == 0 ? 4 : 1;
  store_four(VALUES_HALF, values, pixel * OUT_C + CHANNEL_OFFSET + channel, left, step, v);
}
