// @kernel   elementwise   the operand, as float, through the epilogue; with bits out it packs signs
// @math     v = x (INPUT_KIND 0 float or half, 1 u8, 2 bits: +1 or -1), then the steps
// @args     int first_pixel, int end_pixel, void* input, SINK
// @in       [pixels of the batch][OUT_C] float, half or uchar; INPUT_KIND 2: [..][OUT_WORDS] uint
// @geometry global = (roundup(pixels * ceil(channels / TILE_CHANNELS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_CHANNELS
// @tune     TILE_CHANNELS {4,8,16,32} = 8   channels a work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires TILE_CHANNELS >= 8 where HAS_BITS
// @ref      ELEMENTWISE   @source own
#include "common/sink.clh"
#include "common/channels.clh"

float4 operand(__global const void* input, int pixel, int channel) {
#if INPUT_KIND == 2
  const uint word = ((__global const uint*)input)[pixel * OUT_WORDS + channel / 32] >> (channel % 32);
  return (float4)(word & 1 ? 1.0f : -1.0f, word & 2 ? 1.0f : -1.0f, word & 4 ? 1.0f : -1.0f, word & 8 ? 1.0f : -1.0f);
#elif INPUT_KIND == 1
  __global const uchar* from = (__global const uchar*)input + (pixel * OUT_C + channel);
#if OUT_C % 4 == 0
  return convert_float4(*(__global const uchar4*)from);
#else
  const int left = OUT_C - channel;
  return (float4)(from[0], left > 1 ? from[1] : 0, left > 2 ? from[2] : 0, left > 3 ? from[3] : 0);
#endif
#else
  return load_four(INPUT_HALF, input, pixel * OUT_C + channel, OUT_C - channel, OUT_C);
#endif
}

__kernel void elementwise(int first_pixel, int end_pixel, __global const void* input SINK_PARAMS) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = id / CHANNEL_TILES, channel = FIRST_CHANNEL + id % CHANNEL_TILES * TILE_CHANNELS;
  if (pixel >= end_pixel) return;
  float4 results[TILE_VECTORS];
#pragma unroll
  for (int v = 0; v < TILE_VECTORS; v++) {
    const int c = channel + 4 * v;
    results[v] = c < END_CHANNEL ? operand(input, pixel, c) : (float4)(0.0f);
  }
  finish_tile(results, pixel, channel SINK_ARGS);
}
