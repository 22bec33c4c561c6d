// @kernel   matmul_bits   the product of two maps of bits, group by group: a pixel and four results per work-item
// @math     values[p][g N + n] = K - 2 popcount(input[p] ^ factor[n]) over the K bits of group g
// @args     int first_pixel, int end_pixel, uint* input, uint* factor, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires K = IN_C / GROUPS, N = OUT_C / GROUPS
// @ref      MATMUL_TRANSPOSED of bits   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"
#include "common/window.clh"
#include "common/words.clh"

#define DEPTH (IN_C / GROUPS)
#define GROUP_OUT_C (OUT_C / GROUPS)

__kernel void matmul_bits(int first_pixel, int end_pixel, __global const uint* restrict input,
                          __global const uint* restrict factor, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  float sum[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    // Channels beyond the last one repeat it; their results go nowhere.
    const int c = min(channel + i, OUT_C - 1), first = QUOTIENT(c, GROUP_OUT_C) * DEPTH;
    const int column = (PIXEL_IMAGE(pixel) * GROUP_OUT_C + REMAINDER(c, GROUP_OUT_C)) * IN_WORDS;
    uint d = 0;
    for (int k = 0; k < DEPTH; k += 32) {
      const int count = min(32, DEPTH - k);
      d += popcount(read_bits(input, pixel * IN_WORDS, first + k, count) ^ read_bits(factor, column, first + k, count));
    }
    sum[i] = (float)(DEPTH - 2 * (int)d);
  }
  const float4 result = VECTOR_4(float, sum[0], sum[1], sum[2], sum[3]);
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, OUT_C - channel, OUT_C, result);
}
