// @kernel   bconv2d_mma   binary convolution on NVIDIA's tensor cores; a warp holds TILE_PIXELS x TILE_FILTERS counts
// @math     s = popcount(in & w), p = popcount(in) over all taps, padded ones as PAD_BITS; d = p - 2 s;
//     threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh); both from a table that is shifted by
//     popcount(w)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, SINK
// @weights  mma, then table and borders
// @geometry global = (32 * roundup(ceil(pixels / TILE_PIXELS), WARPS), SPLIT * ceil(channels / TILE_FILTERS)), local = (32 * WARPS, SPLIT)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {16,32,64} = 32   output pixels per warp
// @tune     TILE_FILTERS {32,64,128} = 64   filters per warp
// @tune     WARPS {1,2,4,8} = 2   warps per group that have pixels of their own
// @tune     SPLIT {1,2,3,4,6,8} = 1   warps that share the words of a window; their counts are added up in local memory
// @requires nvidia, compute capability 8.0; GROUPS = 1; TILE_PIXELS * TILE_FILTERS <= 4096; WARPS * SPLIT <= 8; SPLIT > 1:
//     WARPS * SPLIT * TILE_PIXELS * TILE_FILTERS <= 8192; PADDED: KERNEL_H, KERNEL_W <= 15
// @ref      BINARY_CONV2D   @source own
#define VECTOR_WORDS 2
#include "common/words.clh"
#include "common/counts.clh"
#include "common/mma.clh"

// Weights, table and borders are one buffer: of what NVIDIA's driver needs to launch a kernel, each buffer takes half a
// microsecond.
//
// The table. For bits, popcount(in ^ w) = popcount(in) + popcount(w) - 2 popcount(in & w), so that the count D of the
// other kernels is D = d + popcount(w) with d = p - 2 s. D < limit <=> d < limit - popcount(w), and base - 2 D = (base
// - 2 popcount(w)) - 2 d. The host subtracts.
//
// p comes from the tensor cores too: a block of columns that are all ones. Its fragment has p of the very rows that a
// lane finishes, where counting in the lanes would end in shuffles; it was 4 % faster on an H200 (tile 32x128).
//
// Rows are output pixels, columns filters. A lane reads words 2t and 2t + 1 of each chunk of eight, of ROWS pixels that
// lie eight apart. Filters are dealt to columns so that the counts of a lane are those of LANE_FILTERS neighbouring
// channels: filter q * LANE_FILTERS + 2 j + i (i = 0, 1) is column 2 q + i of block j. So bits are packed and stored
// without shuffles.
#define ROWS (TILE_PIXELS / 8)
#define LANE_FILTERS (TILE_FILTERS / 4)
#define QUADS (LANE_FILTERS / 4)

#define WINDOW_VECTORS (KERNEL_H * KERNEL_W * PIXEL_VECTORS)
#define CHUNK_VECTORS (8 / VECTOR_WORDS)
#define LANE_VECTORS (2 / VECTOR_WORDS)
#define STEPS ((WINDOW_VECTORS + SPLIT * CHUNK_VECTORS - 1) / (SPLIT * CHUNK_VECTORS))
#define TILE_WEIGHTS (STEPS * SPLIT * TILE_FILTERS * 2)
#define TILES ((OUT_C + TILE_FILTERS - 1) / TILE_FILTERS)
// Vectors of the last chunk may lie beyond the window: zeros, there and in the weights.
#define HAS_TAIL (WINDOW_VECTORS != STEPS * SPLIT * CHUNK_VECTORS)
// Where chunks do not straddle taps, the tap is the same in all lanes.
#define IS_TAP_UNIFORM (PIXEL_VECTORS % CHUNK_VECTORS == 0)

// `outside[i]`: which window rows and columns of pixel i are padding. One test per load, also for the tail.
#define ROW_BIT(ky) (1u << (ky))
#define COLUMN_BIT(kx) (1u << (15 + (kx)))
#define TAIL_BIT (1u << 31)

// Vector v of the lane's words of a chunk, of the pixel whose window begins at `from`.
words_t load_words(__global const words_t* restrict input, int from, uint outside, int chunk, int part, int v) {
  const int first = chunk * CHUNK_VECTORS + (IS_TAP_UNIFORM ? 0 : part * LANE_VECTORS + v);
  const int lane_q = IS_TAP_UNIFORM ? part * LANE_VECTORS + v : 0;
  const int tap = first / PIXEL_VECTORS, q = first % PIXEL_VECTORS, ky = tap / KERNEL_W, kx = tap % KERNEL_W;
#if PADDED || HAS_TAIL
  const int is_tail = HAS_TAIL && first >= WINDOW_VECTORS;
  const uint tap_bits = is_tail ? TAIL_BIT : ROW_BIT(ky) | COLUMN_BIT(kx);
  if ((outside & tap_bits) != 0) return is_tail ? (words_t)(0) : PAD_WORDS(q + lane_q);
#endif
  return input[from + (ky * (DILATION_H * IN_W) + kx * DILATION_W) * PIXEL_VECTORS + q + lane_q];
}

// The lane's words of a chunk of all its pixels. Text, not a function: PoCL 3.0 gives the work-items one array between
// them if only a function writes to it, and that is not inlined.
#if VECTOR_WORDS == 2
#define SET_WORDS(row, v, words) row[0] = words.x, row[1] = words.y
#else
#define SET_WORDS(row, v, words) row[v] = words
#endif
#define LOAD_ROWS(a, chunk)                                                                     \
  _Pragma("unroll") for (int v = 0; v < LANE_VECTORS; ++v) {                                    \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                          \
      const words_t words = load_words(input, from[i], outside[i], chunk, part, v);             \
      SET_WORDS(a[i], v, words);                                                                \
    }                                                                                           \
  }

void load_columns(uint4* b, __global const uint4* restrict filter_words, int chunk) {
#pragma unroll
  for (int j = 0; j < TILE_FILTERS / 16; ++j) b[j] = filter_words[(chunk * (TILE_FILTERS / 16) + j) * 32];
}

void multiply(int (*counts)[TILE_FILTERS / 8][4], int (*ones)[4], uint (*a)[2], const uint4* b MMA_PARAMS) {
  uint4 rows[ROWS / 2];
#pragma unroll
  for (int i = 0; i < ROWS / 2; ++i) {
    rows[i] = (uint4)(a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1]);
    count_common(ones[i], rows[i], (uint2)(~0u) MMA_ARGS);
  }
#pragma unroll
  for (int j = 0; j < TILE_FILTERS / 16; ++j) {
#pragma unroll
    for (int i = 0; i < ROWS / 2; ++i) {
      count_common(counts[i][2 * j], rows[i], b[j].xy MMA_ARGS);
      count_common(counts[i][2 * j + 1], rows[i], b[j].zw MMA_ARGS);
    }
  }
}

// d of pixel i (of ROWS) and of quad k of the lane's channels; both are constants.
#define COUNTS_OF(i, j) counts[(i) / 2][j][(i) % 2 * 2], counts[(i) / 2][j][(i) % 2 * 2 + 1]
#define DIFFERENCES(i, k) (ones[(i) / 2][(i) % 2 * 2] - 2 * (int4)(COUNTS_OF(i, 2 * (k)), COUNTS_OF(i, 2 * (k) + 1)))

// In scope: packed, limits or entries, pixel. From the last quad to the first.
#ifdef THRESHOLD
#define READ_LIMITS(quads, entries)                                                           \
  _Pragma("unroll") for (int k = 0; k < (quads); ++k) limits[k] = LOAD_4(int, table, (entries) + 4 * k);
#define ADD_QUAD(d, k, channel)                 \
  {                                             \
    const int4 below = (d) - limits[k];         \
    packed = packed << 1 | (uint)below.w >> 31; \
    packed = packed << 1 | (uint)below.z >> 31; \
    packed = packed << 1 | (uint)below.y >> 31; \
    packed = packed << 1 | (uint)below.x >> 31; \
  }
#else
#define ADD_QUAD(d, k, channel) \
  packed = packed << 4 | finish4(0, as_uint4(d), table, entries, pixel, (channel) + 4 * (k) SINK_ARGS) >> 28;
#endif

__kernel __attribute__((reqd_work_group_size(32 * WARPS, SPLIT, 1))) void bconv2d_mma(
    int first_pixel, int end_pixel, __global const words_t* restrict input,
    __global const uint4* restrict weights SINK_PARAMS) {
  __global const int* table = (__global const int*)(weights + TILES * TILE_WEIGHTS);
  __global const ushort* borders = (__global const ushort*)(table + ROW_CLASSES * COLUMN_CLASSES * TABLE_C);
  MMA_MEMORY
  const int warp = (int)get_local_id(0) / 32, split = get_local_id(1);
  const int lane = (int)get_local_id(0) % 32, row = lane / 4, part = lane % 4;
  const int warp_pixel = first_pixel + ((int)get_group_id(0) * WARPS + warp) * TILE_PIXELS;
  const int tile = FIRST_CHANNEL / TILE_FILTERS + (int)get_group_id(1);
  const int channel = tile * TILE_FILTERS + part * LANE_FILTERS;

  int from[ROWS], class[ROWS];
  uint outside[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = min(warp_pixel + 8 * i + row, end_pixel - 1);
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
    const int in_y = TAP_Y(y, 0), in_x = TAP_X(x, 0);
    class[i] = BORDER_CLASS(borders, y, x);
    from[i] = ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * PIXEL_VECTORS;
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

#if SPLIT > 1
// The group's counts are finished by all its warps, eight channels of a pixel per lane at a time: unit u.
#define UNITS (ROWS * QUADS / 2)
#define UNIT_PIXEL(u) (warp_pixel + (u) / (QUADS / 2) * 8 + row)
#define UNIT_CHANNEL(u) (channel + (u) % (QUADS / 2) * 8)
#define UNIT_ENTRIES(u) TABLE_ENTRIES(borders, PIXEL_Y(UNIT_PIXEL(u)), PIXEL_X(UNIT_PIXEL(u)))
#define IS_UNIT(u) ((u) < UNITS && UNIT_PIXEL(u) < end_pixel && UNIT_CHANNEL(u) < END_CHANNEL)
#ifdef THRESHOLD
  // Those of the first unit come while the window is counted.
  int4 limits[2] = {0, 0};
  if (IS_UNIT(split)) {
    READ_LIMITS(2, UNIT_ENTRIES(split) + UNIT_CHANNEL(split))
  }
#endif
#endif

  int counts[ROWS / 2][TILE_FILTERS / 8][4] = {{{0}}}, ones[ROWS / 2][4] = {{0}};

  __global const uint4* filter_words = weights + tile * TILE_WEIGHTS + lane;
  uint a[ROWS][2], next_a[ROWS][2];
  uint4 b[TILE_FILTERS / 16];
  // The next rows are on their way during a step. Columns, which all warps share, are asked for after it and need no
  // second set of registers: eight images of 224x224x256 -> 256 with tile 32x64 took 125 us on an H200 instead of 134.
  LOAD_ROWS(a, split)
  load_columns(b, filter_words, split);
  for (int step = 1; step < STEPS; ++step) {
    LOAD_ROWS(next_a, step * SPLIT + split)
    multiply(counts, ones, a, b MMA_ARGS);
    load_columns(b, filter_words, step * SPLIT + split);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) a[i][0] = next_a[i][0], a[i][1] = next_a[i][1];
  }
  multiply(counts, ones, a, b MMA_ARGS);

#if SPLIT == 1
#ifdef THRESHOLD
  int4 limits[QUADS];
#endif
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = warp_pixel + 8 * i + row;
    if (pixel < end_pixel && channel < END_CHANNEL) {
      const int entries = class[i] * TABLE_C;
#ifdef THRESHOLD
      if (i == 0 || class[i] != class[i - 1]) {
        READ_LIMITS(QUADS, entries + channel)
      }
#endif
      uint packed = 0;
#pragma unroll
      for (int k = QUADS - 1; k >= 0; --k) ADD_QUAD(DIFFERENCES(i, k), k, channel)
      store_lane_bits(LANE_FILTERS, pixel, channel, packed SINK_ARGS);
    }
  }
#else
  __local int4 shared[SPLIT][WARPS][ROWS * QUADS][32];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#pragma unroll
    for (int k = 0; k < QUADS; ++k) shared[split][warp][i * QUADS + k][lane] = DIFFERENCES(i, k);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int unit = split; unit < UNITS; unit += SPLIT) {
    if (!IS_UNIT(unit)) continue;
    const int pixel = UNIT_PIXEL(unit), unit_channel = UNIT_CHANNEL(unit);
    const int entries = UNIT_ENTRIES(unit);
#ifdef THRESHOLD
    if (unit != split) {
      READ_LIMITS(2, entries + unit_channel)
    }
#endif
    uint packed = 0;
#pragma unroll
    for (int k = 1; k >= 0; --k) {
      int4 d = 0;
#pragma unroll
      for (int s = 0; s < SPLIT; ++s) d += shared[s][warp][2 * unit + k][lane];
      ADD_QUAD(d, k, unit_channel)
    }
    store_lane_bits(8, pixel, unit_channel, packed SINK_ARGS);
  }
#endif
}
