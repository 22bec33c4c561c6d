// @kernel   conv2d_f32_mma   float convolution on NVIDIA's tensor cores; a warp holds TILE_PIXELS x TILE_FILTERS sums
// @math     sum over taps and input channels of half(x) * half(w), added as float in any order: tolerance
// @args     int first_pixel, int end_pixel, void* input, uint* weights, SINK
// @weights  mma of halves
// @geometry global = (32 * roundup(ceil(pixels / TILE_PIXELS), WARPS), SPLIT * ceil(channels / TILE_FILTERS)), local = (32 * WARPS, SPLIT)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {16,32,64} = 32   output pixels per warp
// @tune     TILE_FILTERS {16,32,64} = 64   filters per warp
// @tune     WARPS {1,2,4,8} = 4   warps per group that have pixels of their own
// @tune     SPLIT {1,2,4,8} = 1   warps that share a window; their sums are added up in local memory
// @requires nvidia, compute capability 8.0; GROUPS = 1; weights stored in 16 or 8 bits; TILE_FILTERS >= 32 where HAS_BITS;
//     TILE_PIXELS * TILE_FILTERS <= 2048; WARPS * SPLIT <= 8; SPLIT > 1: WARPS * SPLIT * TILE_PIXELS * TILE_FILTERS <=
//     4096; PADDED: KERNEL_H, KERNEL_W <= 15; at most 3584 places (below)
// @ref      CONV2D of float values   @source own
#define TILE_CHANNELS (TILE_FILTERS / 4)
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"
#include "common/mma.clh"

// Rows are output pixels, columns filters, as in bconv2d_mma.cl: a lane has the sums of TILE_CHANNELS neighbouring
// channels of ROWS pixels that lie eight apart. It reads eight neighbouring elements of each chunk of 32, for two
// multiplications.
#define ROWS (TILE_PIXELS / 8)
#define BLOCKS (TILE_FILTERS / 8)
#define WINDOW (KERNEL_H * KERNEL_W * IN_C)
#define STEPS ((WINDOW + SPLIT * 32 - 1) / (SPLIT * 32))
#define HAS_TAIL (WINDOW != STEPS * SPLIT * 32)

// A table in local memory says where elements lie, seen from the window's first: .x, and in which row and column of the
// window: .y, one bit each. So no lane divides. Eight channels of a tap are one place, where taps have as many.
#if IN_C % 8 == 0
#define PLACE 8
#else
#define PLACE 1
#endif
#define PLACES (STEPS * SPLIT * 32 / PLACE)
// `outside[i]`: which window rows and columns of pixel i are padding. One test per load, also for the tail.
#define ROW_BIT(ky) (1 << (ky))
#define COLUMN_BIT(kx) (1 << (15 + (kx)))
#define TAIL_BIT (1 << 30)
#if PADDED || HAS_TAIL
#define IS_READ(i, place) ((outside[i] & (place).y) == 0)
#else
#define IS_READ(i, place) 1
#endif

#if PLACE == 8
uint4 load_eight(__global const void* restrict input, int at) {
#if INPUT_HALF
  return *(__global const uint4*)((__global const half*)input + at);
#else
  const float4 low = LOAD_VALUE4(0, input, at), high = LOAD_VALUE4(0, input, at + 4);
  return (uint4)(pack_halves(low.x, low.y), pack_halves(low.z, low.w), pack_halves(high.x, high.y),
                 pack_halves(high.z, high.w));
#endif
}
#define LOAD_ROWS(a, chunk)                                                              \
  {                                                                                      \
    const int2 place = places[(chunk) * 4 + part];                                       \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) a[i] =                              \
        IS_READ(i, place) ? load_eight(input, from[i] + place.x) : (uint4)(0);           \
  }
#else
#if INPUT_HALF
#define ELEMENT uint
#define LOAD_ELEMENT(at) ((__global const ushort*)input)[at]
#define PACK(low, high) ((low) | (high) << 16)
#else
#define ELEMENT float
#define LOAD_ELEMENT(at) ((__global const float*)input)[at]
#define PACK(low, high) pack_halves(low, high)
#endif
#define READ_PLACE(i, place) (IS_READ(i, place) ? LOAD_ELEMENT(from[i] + (place).x) : 0)
#define LOAD_PAIR(word, n)                                                                        \
  {                                                                                               \
    const int2 even = own[2 * (n)], odd = own[2 * (n) + 1];                                       \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                            \
      const ELEMENT low = READ_PLACE(i, even), high = READ_PLACE(i, odd);                         \
      word = PACK(low, high);                                                                     \
    }                                                                                             \
  }
#define LOAD_ROWS(a, chunk)                                          \
  {                                                                  \
    __local const int2* own = places + (chunk) * 32 + part * 8;      \
    LOAD_PAIR(a[i].x, 0)                                             \
    LOAD_PAIR(a[i].y, 1)                                             \
    LOAD_PAIR(a[i].z, 2)                                             \
    LOAD_PAIR(a[i].w, 3)                                             \
  }
#endif

__kernel __attribute__((reqd_work_group_size(32 * WARPS, SPLIT, 1))) void conv2d_f32_mma(
    int first_pixel, int end_pixel, __global const void* restrict input, __global const uint4* restrict weights SINK_PARAMS) {
  MMA_MEMORY
  __local int2 places[PLACES];
  const int warp = (int)get_local_id(0) / 32, split = get_local_id(1);
  const int lane = (int)get_local_id(0) % 32, row = lane / 4, part = lane % 4;
  const int warp_pixel = first_pixel + ((int)get_group_id(0) * WARPS + warp) * TILE_PIXELS;
  const int tile = FIRST_CHANNEL / TILE_FILTERS + (int)get_group_id(1);
  const int channel = tile * TILE_FILTERS + part * TILE_CHANNELS;

  for (int i = split * 32 * WARPS + (int)get_local_id(0); i < PLACES; i += 32 * WARPS * SPLIT) {
    const int tap = i * PLACE / IN_C, ky = tap / KERNEL_W, kx = tap % KERNEL_W;
    const int at = (ky * (DILATION_H * IN_W) + kx * DILATION_W) * IN_C + i * PLACE % IN_C;
    places[i] = i * PLACE < WINDOW ? (int2)(at, PADDED ? ROW_BIT(ky) | COLUMN_BIT(kx) : 0) : (int2)(0, TAIL_BIT);
  }
  int from[ROWS], outside[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = min(warp_pixel + 8 * i + row, end_pixel - 1);
    const int in_y = TAP_Y(PIXEL_Y(pixel), 0), in_x = TAP_X(PIXEL_X(pixel), 0);
    from[i] = ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * IN_C;
    outside[i] = TAIL_BIT;
#if PADDED
    for (int ky = 0; ky < KERNEL_H; ++ky) {
      if ((uint)(in_y + ky * DILATION_H) >= (uint)IN_H) outside[i] |= ROW_BIT(ky);
    }
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      if ((uint)(in_x + kx * DILATION_W) >= (uint)IN_W) outside[i] |= COLUMN_BIT(kx);
    }
#endif
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float sums[ROWS / 2][BLOCKS][4] = {{{0}}};
  __global const uint4* filters = weights + tile * (STEPS * SPLIT * BLOCKS * 32) + lane;
  uint4 a[ROWS], next_a[ROWS];
  // The next rows are on their way during a step.
  LOAD_ROWS(a, split)
  for (int step = 0; step < STEPS; ++step) {
    const int chunk = step * SPLIT + split;
    if (step + 1 < STEPS) LOAD_ROWS(next_a, chunk + SPLIT)
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      const uint4 b = filters[(chunk * BLOCKS + j) * 32];
#pragma unroll
      for (int i = 0; i < ROWS / 2; ++i) {
        multiply_halves(sums[i][j], (uint4)(a[2 * i].x, a[2 * i + 1].x, a[2 * i].y, a[2 * i + 1].y), b.xy MMA_ARGS);
        multiply_halves(sums[i][j], (uint4)(a[2 * i].z, a[2 * i + 1].z, a[2 * i].w, a[2 * i + 1].w), b.zw MMA_ARGS);
      }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) a[i] = next_a[i];
  }

// Four sums of pixel i (of ROWS): quad k of the lane's channels.
#define SUMS_OF(i, k)                                                                                              \
  (float4)(sums[(i) / 2][2 * (k)][(i) % 2 * 2], sums[(i) / 2][2 * (k)][(i) % 2 * 2 + 1],                           \
           sums[(i) / 2][2 * (k) + 1][(i) % 2 * 2], sums[(i) / 2][2 * (k) + 1][(i) % 2 * 2 + 1])
#if SPLIT > 1
  __local float4 shared[SPLIT][WARPS][ROWS * TILE_VECTORS][32];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#pragma unroll
    for (int k = 0; k < TILE_VECTORS; ++k) shared[split][warp][i * TILE_VECTORS + k][lane] = SUMS_OF(i, k);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = split; i < ROWS; i += SPLIT) {
#else
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#endif
    const int pixel = warp_pixel + 8 * i + row;
    if (pixel >= end_pixel || channel >= END_CHANNEL) continue;
    float4 results[TILE_VECTORS];
#pragma unroll
    for (int k = 0; k < TILE_VECTORS; ++k) {
#if SPLIT > 1
      results[k] = (float4)(0.0f);
#pragma unroll
      for (int s = 0; s < SPLIT; ++s) results[k] += shared[s][warp][i * TILE_VECTORS + k][lane];
#else
      results[k] = SUMS_OF(i, k);
#endif
    }
    store_lane_bits(TILE_CHANNELS, pixel, channel, finish_tile(results, pixel, channel SINK_ARGS) SINK_ARGS);
  }
}
