// @kernel   conv2d_f32_dot   float convolution by `dot`; the SPLIT lanes of a group share each sum
// @math     sum of x * w over all taps and channels, lanes apart, then added up in local memory: tolerance, not equality
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  as in the file: float [OUT_C][KERNEL_H*KERNEL_W*IN_C]
// @geometry global = (SPLIT * ceil(channels / TILE_FILTERS), ceil(pixels / TILE_PIXELS)), local = (SPLIT, 1)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4} = 1   output pixels per group
// @tune     TILE_FILTERS {8,16,32} = 8   output channels per group
// @tune     SPLIT {16,32,64,128} = 64   lanes that share a sum
// @requires GROUPS == 1; TILE_FILTERS >= min(32, OUT_C) where HAS_BITS
// @ref      CONV2D of float values   @source PhoneBit VI ("dot" in the last layer)
//
// A window falls into runs that are contiguous in the map and in the weights: all of it for 1x1 and dense layers, rows
// without padding, single taps otherwise. Lanes take four elements of a run at a time, in turn.
#include "common/sink.clh"
#include "common/window.clh"

#define TAPS (KERNEL_H * KERNEL_W * IN_C)
#if KERNEL_H * KERNEL_W == 1 || (!PADDED && DILATION_H == 1 && DILATION_W == 1 && KERNEL_W == IN_W)
#define RUN_TAPS (KERNEL_H * KERNEL_W)
#elif !PADDED && DILATION_W == 1
#define RUN_TAPS KERNEL_W
#else
#define RUN_TAPS 1
#endif
#define RUN (RUN_TAPS * IN_C)
#if IN_C % 4 == 0
#define LOAD_FOUR_INPUTS LOAD_VALUE4
#else
#define LOAD_FOUR_INPUTS LOAD_VALUE4_ANYWHERE
#endif
#define SUMS (TILE_PIXELS * TILE_FILTERS)

__kernel __attribute__((reqd_work_group_size(SPLIT, 1, 1))) void conv2d_f32_dot(
    int first_pixel, int end_pixel, __global const void* restrict input,
    __global const float* restrict weights SINK_PARAMS) {
  __local float shared[SUMS][SPLIT];
  const int lane = get_local_id(0), filter0 = FIRST_CHANNEL + (int)get_group_id(0) * TILE_FILTERS;
  const int pixel0 = first_pixel + (int)get_group_id(1) * TILE_PIXELS;

  int row[TILE_PIXELS], column[TILE_PIXELS], origin[TILE_PIXELS], filter[TILE_FILTERS];
  float sum[TILE_PIXELS][TILE_FILTERS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    // Pixels and filters beyond the last ones repeat it; their results go nowhere.
    const int pixel = min(pixel0 + p, end_pixel - 1);
    row[p] = PIXEL_Y(pixel) * STRIDE_H - PAD_TOP;
    column[p] = PIXEL_X(pixel) * STRIDE_W - PAD_LEFT;
    origin[p] = ((PIXEL_IMAGE(pixel) * IN_H + row[p]) * IN_W + column[p]) * IN_C;
#pragma unroll
    for (int f = 0; f < TILE_FILTERS; f++) sum[p][f] = 0.0f;
  }
#pragma unroll
  for (int f = 0; f < TILE_FILTERS; f++) filter[f] = min(filter0 + f, OUT_C - 1) * TAPS;

  int begin = 0;  // of the run, among the taps of the window
  for (int ky = 0; begin < TAPS; ky++) {
    for (int kx = 0; kx < KERNEL_W; kx += RUN_TAPS, begin += RUN) {
      int from[TILE_PIXELS], inside[TILE_PIXELS];
#pragma unroll
      for (int p = 0; p < TILE_PIXELS; p++) {
        inside[p] = INSIDE(row[p] + ky * DILATION_H, column[p] + kx * DILATION_W);
        from[p] = inside[p] ? origin[p] + (ky * DILATION_H * IN_W + kx * DILATION_W) * IN_C : 0;
      }
      for (int k = 4 * lane; k < RUN / 4 * 4; k += 4 * SPLIT) {
        float4 x[TILE_PIXELS];
#pragma unroll
        for (int p = 0; p < TILE_PIXELS; p++) {
          const float4 loaded = LOAD_FOUR_INPUTS(INPUT_HALF, input, from[p] + k);
          x[p] = inside[p] ? loaded : (float4)(0.0f);
        }
#pragma unroll
        for (int f = 0; f < TILE_FILTERS; f++) {
          const float4 weight = LOAD_FOUR_INPUTS(0, weights, filter[f] + begin + k);
#pragma unroll
          for (int p = 0; p < TILE_PIXELS; p++) sum[p][f] += dot(x[p], weight);
        }
      }
#if RUN % 4 != 0
      // The last one to three elements, one lane each.
      for (int k = RUN / 4 * 4 + lane; k < RUN; k += SPLIT) {
#pragma unroll
        for (int p = 0; p < TILE_PIXELS; p++) {
          const float loaded = LOAD_VALUE(INPUT_HALF, input, from[p] + k);
          const float x = inside[p] ? loaded : 0.0f;
#pragma unroll
          for (int f = 0; f < TILE_FILTERS; f++) sum[p][f] += x * weights[filter[f] + begin + k];
        }
      }
#endif
    }
  }

#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
    for (int f = 0; f < TILE_FILTERS; f++) shared[p * TILE_FILTERS + f][lane] = sum[p][f];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int lanes = SPLIT / 2; lanes > 0; lanes /= 2) {
    // All lanes work on each halving: `lanes` additions for every sum.
    for (int i = lane; i < SUMS * lanes; i += SPLIT) {
      const int of = QUOTIENT(i, lanes), at = REMAINDER(i, lanes);
      shared[of][at] += shared[of][at + lanes];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#ifdef HAS_BITS
  // A lane packs the bits of a pixel.
  for (int p = lane; p < TILE_PIXELS; p += SPLIT) {
    if (pixel0 + p >= end_pixel) continue;
    uint packed = 0;
    for (int f = 0; f < TILE_FILTERS; f++) {
      packed |= sink1(shared[p * TILE_FILTERS + f][0], pixel0 + p, filter0 + f SINK_ARGS) << f;
    }
    store_word(pixel0 + p, QUOTIENT(filter0, 32), packed SINK_ARGS);
  }
#else
  for (int i = lane; i < SUMS; i += SPLIT) {
    const int pixel = pixel0 + QUOTIENT(i, TILE_FILTERS), channel = filter0 + REMAINDER(i, TILE_FILTERS);
    if (pixel < end_pixel) sink1(shared[i][0], pixel, channel SINK_ARGS);
  }
#endif
}
