// @kernel   matmul   the product of two maps, group by group: a pixel and four results per work-item
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
#define FACTOR(index) LOAD_VALUE(FACTOR_HALF, factor, index)

// Where the second operand of channel c begins.
#define FACTOR_STEP (TRANSPOSED ? 1 : OUT_C)
#define FIRST_OF(image, c)                                                                                     \
  (TRANSPOSED ? ((image) * GROUP_OUT_C + REMAINDER(c, GROUP_OUT_C)) * IN_C + QUOTIENT(c, GROUP_OUT_C) * DEPTH  \
              : (image) * DEPTH * OUT_C + (c))

__kernel void matmul(int first_pixel, int end_pixel, __global const void* restrict input,
                     __global const void* restrict factor, __global void* restrict values) {
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = REMAINDER(id, CHANNEL_TILES) * 4;
  if (pixel >= end_pixel) return;
  const int image = PIXEL_IMAGE(pixel), row = pixel * IN_C;
  float4 sum = (float4)(0.0f);
  if (GROUP_OUT_C % 4 == 0) {  // one group
    const int left = row + QUOTIENT(channel, GROUP_OUT_C) * DEPTH, first = FIRST_OF(image, channel);
    for (int k = 0; k < DEPTH; k++) {
      const int at = TRANSPOSED ? first + k : first + k * OUT_C;
      const float4 b =
          TRANSPOSED ? VECTOR_4(float, FACTOR(at), FACTOR(at + IN_C), FACTOR(at + 2 * IN_C), FACTOR(at + 3 * IN_C))
                     : load_four(FACTOR_HALF, factor, at, 4, OUT_C);
      sum = fma((float4)(LOAD_VALUE(INPUT_HALF, input, left + k)), b, sum);
    }
  } else {
    float sums[4];
    for (int i = 0; i < 4; i++) {
      // Channels beyond the last one repeat it; their results go nowhere.
      const int c = min(channel + i, OUT_C - 1);
      const int left = row + QUOTIENT(c, GROUP_OUT_C) * DEPTH, first = FIRST_OF(image, c);
      sums[i] = 0.0f;
      for (int k = 0; k < DEPTH; k++) {
        sums[i] = fma(LOAD_VALUE(INPUT_HALF, input, left + k), FACTOR(first + k * FACTOR_STEP), sums[i]);
      }
    }
    sum = VECTOR_4(float, sums[0], sums[1], sums[2], sums[3]);
  }
  store_four(VALUES_HALF, values, pixel * OUT_C + channel, OUT_C - channel, OUT_C, sum);
}
