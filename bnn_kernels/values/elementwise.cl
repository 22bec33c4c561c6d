// @kernel   elementwise   the operand, as float, through the epilogue; with bits out it packs signs
// @math     v = x (INPUT_KIND 0 float or half, 1 u8, 2 bits: +1 or -1), then the steps
// @args     int first_pixel, int end_pixel, void* input, SINK
// @in       [pixels of the batch][OUT_C] float, half or uchar; INPUT_KIND 2: [..][OUT_WORDS] uint
// @geometry global = (roundup(pixels * ceil(roundup(channels, CHANNEL_UNIT) / TILE_CHANNELS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_CHANNELS
// @tune     TILE_CHANNELS {4,8,16,32} = 8   channels per work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires TILE_CHANNELS >= 8 where HAS_BITS
// @ref      ELEMENTWISE   @source own
#include "common/sink.clh"
#include "common/channels.clh"

#if INPUT_KIND == 2
typedef uint input_t;
#elif INPUT_KIND == 1
typedef uchar input_t;
#else
typedef void input_t;
#endif

float4 operand(__global const input_t* input, int pixel, int channel) {
#if INPUT_KIND == 2
  const uint word = input[pixel * OUT_WORDS + QUOTIENT(channel, 32)] >> REMAINDER(channel, 32);
  return VECTOR_4(float, word & 1 ? 1.0f : -1.0f, word & 2 ? 1.0f : -1.0f, word & 4 ? 1.0f : -1.0f, word & 8 ? 1.0f : -1.0f);
#elif INPUT_KIND == 1
  const int at = pixel * OUT_C + channel;
  if (OUT_C % 4 == 0) return convert_float4(LOAD_4(uchar, input, at));
  const int left = OUT_C - channel;
  const int last = at + left - 1;  // as in load_four; clspv fails at reads that a comparison guards
  const float x = input[at], y = input[min(at + 1, last)], z = input[min(at + 2, last)], w = input[min(at + 3, last)];
  return VECTOR_4(float, x, left > 1 ? y : 0.0f, left > 2 ? z : 0.0f, left > 3 ? w : 0.0f);
#else
  return load_four(INPUT_HALF, input, pixel * OUT_C + channel, OUT_C - channel, OUT_C);
#endif
}

__kernel void elementwise(int first_pixel, int end_pixel, __global const input_t* input SINK_PARAMS) {
  SHARED_TILES(1)
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  // With a sign: clspv fails where it knows that the channel which guards a read is not negative.
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = FIRST_CHANNEL + id % CHANNEL_TILES * TILE_CHANNELS;
  uint packed[1];
  packed[0] = 0;
  if (pixel < end_pixel) {
    float4 results[TILE_VECTORS];
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
      const int c = channel + 4 * v;
      results[v] = c < END_CHANNEL ? operand(input, pixel, c) : (float4)(0.0f);
    }
    packed[0] = finish_tile(results, pixel, channel SINK_ARGS);
  }
  STORE_TILES(1, pixel, channel, packed)
}
