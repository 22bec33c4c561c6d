// @kernel   matmul   the product of two maps, group by group: a pixel and four results a work-item
// @math     values[p][g N + n] = sum over k of input[p][g K + k] factor[k][g N + n], TRANSPOSED 1: factor[n][g K + k]; one chain of fma in order from 0
// @args     int first_pixel, int end_pixel, void* input, void* factor, void* values
// @geometry global = (roundup(pixels * ceil(OUT_C / 4), GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires K = IN_C / GROUPS, N = OUT_C / GROUPS
// @ref      MATMUL, MATMUL_TRANSPOSED   @source own
#define TILE_CHANNELS 4
#include "common/channels.clh"
#include "common/window.clh"

#define DEPTH (IN_C / GROUPS)
#define GROUP_OUT_C (OUT_C / GROUPS)
#if TRANSPOSED
#define FACTOR_STEP 1
#else
#define FACTOR_STEP OUT_C
#endif

__kernel void matmul(int first_pixel, int end_pixel, __global const void* restrict input,
                     __global const void* restrict factor, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = id / CHANNEL_TILES, channel = id % CHANNEL_TILES * 4;
  if (pixel >= end_pixel) return;
  const int image = PIXEL_IMAGE(pixel);
  float sum[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    // Channels beyond the last one repeat it; their results go nowhere.
    const int c = min(channel + i, OUT_C - 1), group = c / GROUP_OUT_C;
    const int row = pixel * IN_C + group * DEPTH;
#if TRANSPOSED
    const int column = (image * GROUP_OUT_C + c % GROUP_OUT_C) * IN_C + group * DEPTH;
#else
    const int column = image * DEPTH * OUT_C + c;
#endif
    sum[i] = 0.0f;
    for (int k = 0; k < DEPTH; k++) {
      const float b = LOAD_VALUE(FACTOR_HALF, factor, column + k * FACTOR_STEP);
      sum[i] = fma(LOAD_VALUE(INPUT_HALF, input, row + k), b, sum[i]);
    }
  }
  const float4 result = (float4)(sum[0], sum[1], sum[2], sum[3]);
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, OUT_C - channel, OUT_C, result);
}
