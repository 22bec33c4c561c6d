// @kernel   conv2d_f32_run   float convolution of few channels; a work-item holds the map under TILE_PIXELS neighbouring pixels
// @math     sum over taps and input channels of x * w: one chain of fma in (kh, kw, cin) order from 0, padded taps as +0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  [KERNEL_H*KERNEL_W*IN_C][4 * ceil(OUT_C / 4)] float, filters from OUT_C on are 0
// @geometry global = (GROUP_SIZE * (ceil(pixels / OUT_W) + 1) * ceil(OUT_W * GROUP_FILTERS / (TILE_PIXELS * 8 * GROUP_SIZE)), ceil(channels / GROUP_FILTERS)), local = (GROUP_SIZE, 1)
// @channels GROUP_FILTERS
// @tune     TILE_PIXELS {4,7,8} = 7   output pixels of a row that a work-item computes in 8 channels
// @tune     GROUP_FILTERS {16,32,64} = 32   output channels per group
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == 1; GROUP_FILTERS >= 32 where HAS_BITS; DILATION_W == 1; RUN <= 96 (below); 8 * (KERNEL_W * IN_C * GROUP_FILTERS + MAP_RUN + 3) bytes of local memory
// @ref      CONV2D of float values   @source own
//
// A row of a window is one run of the map, and those of neighbouring pixels overlap: a work-item loads the run under
// all its pixels into registers once per window row, so that a product needs no load but a share of one of weights.
// Both come through local memory, where a group has neighbouring pixels of one row; the next window row's are on their
// way during the sums of one.
#define TILE_CHANNELS 8
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define ROW_TAPS (KERNEL_W * IN_C)
#define STEP (STRIDE_W * IN_C)
#define RUN ((TILE_PIXELS - 1) * STEP + ROW_TAPS)
#define LANES (GROUP_FILTERS / TILE_CHANNELS)
#define GROUP_PIXELS (GROUP_SIZE / LANES * TILE_PIXELS)
#define ROW_GROUPS ((OUT_W + GROUP_PIXELS - 1) / GROUP_PIXELS)
#define GROUP_QUADS (GROUP_FILTERS / 4)
#define FILTER_QUADS ((OUT_C + 3) / 4)

// A window row of the map under the group's pixels, and its weights as float4: [ROW_TAPS][TILE_VECTORS][LANES], so that
// the lanes read neighbours. Work-item i moves elements i, i + GROUP_SIZE, ...; filters beyond the last one repeat it.
// Rows of the first and the last pixels may be parts, and runs may reach over the end of a row.
#define IS_MINE(p) (pixel0 + (p) >= first_pixel && pixel0 + (p) < end_pixel && x + (p) < OUT_W)
#define MAP_RUN ((GROUP_PIXELS - 1) * STEP + ROW_TAPS)
#define ROW_QUADS (ROW_TAPS * GROUP_QUADS)
#define SHARE(count) (((count) + GROUP_SIZE - 1) / GROUP_SIZE)
#define HOLDS(i, count) ((count) % GROUP_SIZE == 0 || (i) < (count))
#define FETCH_ROW(ky)                                                                                  \
  {                                                                                                    \
    const int y = in_y + (ky) * DILATION_H, is_inside = (uint)y < (uint)IN_H;                          \
    const int from = (image * IN_H + y) * (IN_W * IN_C);                                               \
    _Pragma("unroll") for (int j = 0; j < SHARE(MAP_RUN); j++) {                                       \
      const int at = group_at + item + j * GROUP_SIZE;                                                 \
      const int is_read = is_inside && (uint)at < (uint)(IN_W * IN_C);                                 \
      next_map[j] = is_read ? LOAD_VALUE(INPUT_HALF, input, from + at) : 0.0f;                         \
    }                                                                                                  \
    _Pragma("unroll") for (int j = 0; j < SHARE(ROW_QUADS); j++) {                                     \
      const int i = item + j * GROUP_SIZE, quad = i % LANES * TILE_VECTORS + i / LANES % TILE_VECTORS; \
      if (!HOLDS(i, ROW_QUADS)) continue;                                                              \
      next_filters[j] = weights[((ky) * ROW_TAPS + i / GROUP_QUADS) * FILTER_QUADS +                   \
                                min(group_channel / 4 + quad, FILTER_QUADS - 1)];                      \
    }                                                                                                  \
  }
#define STAGE_ROW(ky)                                                      \
  _Pragma("unroll") for (int j = 0; j < SHARE(MAP_RUN); j++) {             \
    const int i = item + j * GROUP_SIZE;                                   \
    if (HOLDS(i, MAP_RUN)) map[(ky) % 2][i] = next_map[j];              \
  }                                                                        \
  _Pragma("unroll") for (int j = 0; j < SHARE(ROW_QUADS); j++) {           \
    const int i = item + j * GROUP_SIZE;                                   \
    if (HOLDS(i, ROW_QUADS)) filters[(ky) % 2][i] = next_filters[j];       \
  }                                                                        \
  barrier(CLK_LOCAL_MEM_FENCE);

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void conv2d_f32_run(
    int first_pixel, int end_pixel, __global const void* restrict input,
    __global const float4* restrict weights SINK_PARAMS) {
  __local float4 filters[2][ROW_QUADS];
  __local float map[2][MAP_RUN];
  SHARED_TILES(TILE_PIXELS)
  const int item = get_local_id(0), lane = item % LANES, group = get_group_id(0);
  const int group_channel = FIRST_CHANNEL + (int)get_group_id(1) * GROUP_FILTERS;
  const int channel = group_channel + lane * TILE_CHANNELS;
  // Rows are counted from the first pixel's on; the first and the last row may be parts.
  const int row = first_pixel / OUT_W + group / ROW_GROUPS, group_x = group % ROW_GROUPS * GROUP_PIXELS;
  const int x = group_x + item / LANES * TILE_PIXELS, pixel0 = row * OUT_W + x;
  if (row * OUT_W >= end_pixel) return;
  const int image = row / OUT_H, in_y = TAP_Y(row % OUT_H, 0), group_at = TAP_X(group_x, 0) * IN_C;

  float next_map[SHARE(MAP_RUN)];
  float4 next_filters[SHARE(ROW_QUADS)], sum[TILE_PIXELS][TILE_VECTORS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] = (float4)(0.0f);
  }
  FETCH_ROW(0)
  STAGE_ROW(0)
  for (int ky = 0; ky < KERNEL_H; ky++) {
    if (ky + 1 < KERNEL_H) FETCH_ROW(ky + 1)
    const int from = item / LANES * (TILE_PIXELS * STEP);
    float run[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++) run[i] = map[ky % 2][from + i];
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
      STAGE_ROW(ky + 1)
    }
  }
  uint packed[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    const int pixel = pixel0 + p;
    packed[p] = IS_MINE(p) && channel < END_CHANNEL ? finish_tile(sum[p], pixel, channel SINK_ARGS) : 0;
  }
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    PUT_TILE(IS_MINE(p) && channel < END_CHANNEL, p, pixel0 + p, channel, packed[p])
  }
  WAIT_FOR_BITS
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    STORE_TILE(IS_MINE(p) && channel < END_CHANNEL, p, pixel0 + p, channel, packed[p])
  }
}
