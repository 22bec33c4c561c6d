// @kernel   conv2d_f32_run   float convolution of few channels; a work-item holds the map under TILE_PIXELS neighbouring pixels
// @math     sum over taps and input channels of x * w: one chain of fma in (kh, kw, cin) order from 0, padded taps as +0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  [KERNEL_H*KERNEL_W*IN_C][4 * ceil(OUT_C / 4)] float, filters from OUT_C on are 0
// @geometry global = (roundup((ceil(pixels / OUT_W) + 1) * ceil(OUT_W / TILE_PIXELS) * (GROUP_FILTERS / 8), GROUP_SIZE), ceil(channels / GROUP_FILTERS)), local = (GROUP_SIZE, 1)
// @channels GROUP_FILTERS
// @tune     TILE_PIXELS {4,8} = 8   output pixels of a row that a work-item computes in 8 channels
// @tune     GROUP_FILTERS {16,32,64} = 64   output channels a group
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {64,128,256} = 128
// @requires GROUPS == 1; DILATION_W == 1; RUN <= 96 (below); 8 * KERNEL_W * IN_C * GROUP_FILTERS bytes of local memory
// @ref      CONV2D of float values   @source own
//
// A row of a window is one run of the map, and those of neighbouring pixels overlap: a work-item loads the run under all its
// pixels into registers once a window row, so that a product needs no load but a share of one of weights. These come through
// local memory, the next window row's on their way during the sums of one.
#define TILE_CHANNELS 8
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define ROW_TAPS (KERNEL_W * IN_C)
#define STEP (STRIDE_W * IN_C)
#define RUN ((TILE_PIXELS - 1) * STEP + ROW_TAPS)
#define ROW_RUNS ((OUT_W + TILE_PIXELS - 1) / TILE_PIXELS)
#define LANES (GROUP_FILTERS / TILE_CHANNELS)
#define GROUP_QUADS (GROUP_FILTERS / 4)
#define FILTER_QUADS ((OUT_C + 3) / 4)

// A window row's weights as float4: [ROW_TAPS][TILE_VECTORS][LANES], so that the lanes read neighbours. Work-item i moves
// quads i, i + GROUP_SIZE, ...; filters beyond the last one repeat it.
#define ROW_QUADS (ROW_TAPS * GROUP_QUADS)
#define SHARE ((ROW_QUADS + GROUP_SIZE - 1) / GROUP_SIZE)
#define HOLDS(i) (ROW_QUADS % GROUP_SIZE == 0 || (i) < ROW_QUADS)
#define FETCH_WEIGHTS(ky)                                                                              \
  _Pragma("unroll") for (int j = 0; j < SHARE; j++) {                                                  \
    const int i = item + j * GROUP_SIZE, quad = i % LANES * TILE_VECTORS + i / LANES % TILE_VECTORS;   \
    if (!HOLDS(i)) continue;                                                                           \
    next[j] = weights[((ky) * ROW_TAPS + i / GROUP_QUADS) * FILTER_QUADS +                             \
                      min(group_channel / 4 + quad, FILTER_QUADS - 1)];                                \
  }
#define STAGE_WEIGHTS(ky)                                                                              \
  _Pragma("unroll") for (int j = 0; j < SHARE; j++) {                                                  \
    if (HOLDS(item + j * GROUP_SIZE)) filters[(ky) % 2][item + j * GROUP_SIZE] = next[j];              \
  }                                                                                                    \
  barrier(CLK_LOCAL_MEM_FENCE);

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void conv2d_f32_run(
    int first_pixel, int end_pixel, __global const void* restrict input,
    __global const float4* restrict weights SINK_PARAMS) {
  __local float4 filters[2][ROW_QUADS];
  const int item = get_local_id(0), id = get_global_id(0), lane = id % LANES;
  const int group_channel = FIRST_CHANNEL + (int)get_group_id(1) * GROUP_FILTERS;
  const int channel = group_channel + lane * TILE_CHANNELS;
  // Runs are counted from the first pixel's row on; the first and the last row may be parts.
  const int row = first_pixel / OUT_W + id / LANES / ROW_RUNS, x = id / LANES % ROW_RUNS * TILE_PIXELS;
  const int pixel0 = row * OUT_W + x, image = row / OUT_H;
  const int in_y = TAP_Y(row % OUT_H, 0), in_x = TAP_X(x, 0);
  const int is_used = pixel0 < end_pixel && channel < END_CHANNEL;

  float4 sum[TILE_PIXELS][TILE_VECTORS], next[SHARE];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] = (float4)(0.0f);
  }
  FETCH_WEIGHTS(0)
  STAGE_WEIGHTS(0)
  for (int ky = 0; ky < KERNEL_H; ky++) {
    const int y = in_y + ky * DILATION_H, from = ((image * IN_H + y) * IN_W + in_x) * IN_C;
    const int has_row = is_used && (uint)y < (uint)IN_H;
    float run[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++) {
      // Also pixels of the tile beyond the row's end read nothing.
      const int is_read = has_row && (uint)(in_x + i / IN_C) < (uint)IN_W;
      run[i] = is_read ? LOAD_VALUE(INPUT_HALF, input, from + i) : 0.0f;
    }
    if (ky + 1 < KERNEL_H) {
      FETCH_WEIGHTS(ky + 1)
    }
#pragma unroll
    for (int k = 0; k < ROW_TAPS; k++) {
#pragma unroll
      for (int v = 0; v < TILE_VECTORS; v++) {
        const float4 weight = filters[ky % 2][(k * TILE_VECTORS + v) * LANES + lane];
#pragma unroll
        for (int p = 0; p < TILE_PIXELS; p++) sum[p][v] = MULTIPLY_ADD((float4)(run[p * STEP + k]), weight, sum[p][v]);
      }
    }
    if (ky + 1 < KERNEL_H) {
      STAGE_WEIGHTS(ky + 1)
    }
  }
  if (!is_used) return;
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    const int pixel = pixel0 + p;
    if (pixel >= first_pixel && pixel < end_pixel && x + p < OUT_W) finish_tile(sum[p], pixel, channel SINK_ARGS);
  }
}
