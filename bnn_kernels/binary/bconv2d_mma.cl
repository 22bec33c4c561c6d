// @kernel   bconv2d_mma   binary convolution on NVIDIA's tensor cores; a warp holds TILE_PIXELS x TILE_FILTERS counts
// @math     s = popcount(in & w), p = popcount(in) over all taps, padded ones as PAD_BITS; d = p - 2 s;
//     threshold: bit = d < limit - popcount(w); epilogue: acc = (base - 2 popcount(w)) - 2 d
// @args     int batch, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  mma
// @geometry global = (32 * roundup(ceil(batch*OUT_H*OUT_W / TILE_PIXELS), WARPS), SPLIT * ceil(OUT_C / TILE_FILTERS)), local = (32 * WARPS, SPLIT)
// @tune     TILE_PIXELS {16,32,64} = 32   output pixels a warp
// @tune     TILE_FILTERS {32,64,128} = 64   filters a warp
// @tune     WARPS {1,2,4,8} = 4   warps a group with pixels of their own
// @tune     SPLIT {1,2,3,4,6,8} = 1   warps that share a window's words out among themselves
// @tune     COUNT {0,1} = 0
// @tune     UNROLL {1,2,3,4,5,9} = 1
// @tune     PREFETCH {0,1,2} = 2
// @requires GROUPS = 1; nvidia, compute capability 8.0; PADDED: windows up to 15x15
// @ref      BINARY_CONV2D   @source own
#define VECTOR_WORDS 2
#include "common/words.clh"
#include "common/counts.clh"
#include "common/mma.clh"

#define ROWS (TILE_PIXELS / 8)
#define LANE_FILTERS (TILE_FILTERS / 4)
#define WINDOW_VECTORS (KERNEL_H * KERNEL_W * PIXEL_VECTORS)
#define CHUNK_VECTORS (8 / VECTOR_WORDS)
#define LANE_VECTORS (2 / VECTOR_WORDS)
#define STEPS ((WINDOW_VECTORS + SPLIT * CHUNK_VECTORS - 1) / (SPLIT * CHUNK_VECTORS))
#define CHUNKS (SPLIT * STEPS)
#define HAS_TAIL (WINDOW_VECTORS != CHUNKS * CHUNK_VECTORS)
#define IS_TAP_UNIFORM (PIXEL_VECTORS % CHUNK_VECTORS == 0)

#if LANE_FILTERS == 8
#define STORE_LANE_BITS store_bits8
#elif LANE_FILTERS == 16
#define STORE_LANE_BITS store_bits16
#else
#define STORE_LANE_BITS store_bits32
#endif

#define ROW_BIT(ky) (1u << (ky))
#define COLUMN_BIT(kx) (1u << (15 + (kx)))
#define TAIL_BIT (1u << 31)

#define DIFFERENCES(counts) (as_uint4((int4)(counts)))

#define LOAD_COLUMNS(b, chunk)                                                                                   \
  _Pragma("unroll") for (int j = 0; j < TILE_FILTERS / 16; ++j) b[j] = filter_words[((chunk) * (TILE_FILTERS / 16) + j) * 32];
#define LOAD_ROWS(a, chunk) load_rows(a, input, from, outside, chunk, part);

void load_rows(uint (*a)[2], __global const words_t* restrict input, const int* from, const uint* outside, int chunk, int part) {
#pragma unroll
    for (int v = 0; v < LANE_VECTORS; ++v) {
#if IS_TAP_UNIFORM
      const int at = chunk * CHUNK_VECTORS + v;
#else
      const int at = chunk * CHUNK_VECTORS + part * LANE_VECTORS + v;
#endif
      const int tap = at / PIXEL_VECTORS, q = at % PIXEL_VECTORS, ky = tap / KERNEL_W, kx = tap % KERNEL_W;
      const int offset = (ky * (DILATION_H * IN_W) + kx * DILATION_W) * PIXEL_VECTORS + q;
#if IS_TAP_UNIFORM
      const words_t pad = !HAS_TAIL || at < WINDOW_VECTORS ? PAD_WORDS(q + part * LANE_VECTORS) : (words_t)0;
      const uint tap_bits = !HAS_TAIL || at < WINDOW_VECTORS ? ROW_BIT(ky) | COLUMN_BIT(kx) : TAIL_BIT;
#else
      const words_t pad = at < WINDOW_VECTORS ? PAD_WORDS(q) : (words_t)0;
      const uint tap_bits = at < WINDOW_VECTORS ? ROW_BIT(ky) | COLUMN_BIT(kx) : TAIL_BIT;
#endif
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        words_t words = pad;
#if PADDED || HAS_TAIL
        if ((outside[i] & tap_bits) == 0)
#endif
          words = input[from[i] + offset];
#if VECTOR_WORDS == 2
        a[i][0] = words.x;
        a[i][1] = words.y;
#else
        a[i][v] = words;
#endif
      }
    }
}

__kernel __attribute__((reqd_work_group_size(32 * WARPS, SPLIT, 1))) void bconv2d_mma(
    int batch, __global const words_t* restrict input, __global const uint4* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  MMA_MEMORY
  const int pixels = batch * (OUT_H * OUT_W);
  const int lane = (int)get_local_id(0) % 32, row = lane / 4, part = lane % 4;
  const int warp = (int)get_local_id(0) / 32, split = get_local_id(1);
  const int first_pixel = ((int)get_group_id(0) * WARPS + warp) * TILE_PIXELS;
  const int tile = get_group_id(1);
  const int channel = tile * TILE_FILTERS + part * LANE_FILTERS;
#if SPLIT == 1
  if (first_pixel >= pixels) return;
#endif

  int from[ROWS], class[ROWS];
  uint outside[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = min(first_pixel + 8 * i + row, pixels - 1);
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
    const int in_y = TAP_Y(y, 0), in_x = TAP_X(x, 0);
    class[i] = BORDER_CLASS(borders, y, x);
    from[i] = ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * PIXEL_VECTORS;
#if IS_TAP_UNIFORM
    from[i] += part * LANE_VECTORS;
#endif
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

  int counts[ROWS / 2][TILE_FILTERS / 8][4];
#pragma unroll
  for (int i = 0; i < ROWS / 2; ++i) {
#pragma unroll
    for (int j = 0; j < TILE_FILTERS / 8; ++j) counts[i][j][0] = counts[i][j][1] = counts[i][j][2] = counts[i][j][3] = 0;
  }
#if COUNT
  int ones[ROWS / 2][4];
#pragma unroll
  for (int i = 0; i < ROWS / 2; ++i) ones[i][0] = ones[i][1] = ones[i][2] = ones[i][3] = 0;
#else
  int ones[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) ones[i] = 0;
#endif

#if SPLIT > 1 && defined(THRESHOLD)
#define EARLY 1
  int4 entry_low = 0, entry_high = 0;
  const int entry_row = split / (LANE_FILTERS / 8);
  if (split < ROWS * LANE_FILTERS / 8 && channel + split % (LANE_FILTERS / 8) * 8 < OUT_C) {
    const int pixel = min(first_pixel + 8 * entry_row + row, pixels - 1);
    __global const int4* entries = (__global const int4*)(TABLE_ROW(table, borders, PIXEL_Y(pixel), PIXEL_X(pixel)) + channel + split % (LANE_FILTERS / 8) * 8);
    entry_low = entries[0];
    entry_high = entries[1];
  }
#endif
  __global const uint4* filter_words = weights + tile * (CHUNKS * TILE_FILTERS * 2) + lane;
  uint a[ROWS][2];
  uint4 b[TILE_FILTERS / 16];
#if PREFETCH >= 1
  LOAD_ROWS(a, split)
#endif
#if PREFETCH == 2
  LOAD_COLUMNS(b, split)
#endif
  for (int first = 0; first < STEPS; first += UNROLL) {
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (STEPS % UNROLL != 0 && first + u >= STEPS) break;
    const int chunk = split + (first + u) * SPLIT;
#if PREFETCH >= 1
    uint next_a[ROWS][2];
    const int next = min(chunk + SPLIT, CHUNKS - 1);
    LOAD_ROWS(next_a, next)
#else
    LOAD_ROWS(a, chunk)
#endif
#if PREFETCH == 2
    uint4 next_b[TILE_FILTERS / 16];
    LOAD_COLUMNS(next_b, next)
#else
    LOAD_COLUMNS(b, chunk)
#endif
#pragma unroll
    for (int j = 0; j < TILE_FILTERS / 16; ++j) {
#pragma unroll
      for (int i = 0; i < ROWS / 2; ++i) {
        MMA_COUNT_COMMON(counts[i][2 * j], a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1], b[j].x, b[j].y)
        MMA_COUNT_COMMON(counts[i][2 * j + 1], a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1], b[j].z, b[j].w)
      }
    }
#pragma unroll
    for (int i = 0; i < ROWS / 2; ++i) {
#if COUNT
      MMA_COUNT_COMMON(ones[i], a[2 * i][0], a[2 * i + 1][0], a[2 * i][1], a[2 * i + 1][1], ~0u, ~0u)
#else
      ones[2 * i] += popcount(a[2 * i][0]) + popcount(a[2 * i][1]);
      ones[2 * i + 1] += popcount(a[2 * i + 1][0]) + popcount(a[2 * i + 1][1]);
#endif
    }
#if PREFETCH >= 1
#pragma unroll
    for (int i = 0; i < ROWS; ++i) a[i][0] = next_a[i][0], a[i][1] = next_a[i][1];
#endif
#if PREFETCH == 2
#pragma unroll
    for (int j = 0; j < TILE_FILTERS / 16; ++j) b[j] = next_b[j];
#endif
  }
  }
#if !COUNT
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    int x;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(x) : "r"(ones[i]));
    ones[i] += x;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 2, 31, -1;" : "=r"(x) : "r"(ones[i]));
    ones[i] += x;
  }
#define ONES(i) ones[i]
#else
#define ONES(i) ones[(i) / 2][(i) % 2 * 2]
#endif
#define COMMON(i, k) (int4)(counts[(i) / 2][2 * (k)][(i) % 2 * 2], counts[(i) / 2][2 * (k)][(i) % 2 * 2 + 1], \
    counts[(i) / 2][2 * (k) + 1][(i) % 2 * 2], counts[(i) / 2][2 * (k) + 1][(i) % 2 * 2 + 1])
#define FOUR(i, k) (ONES(i) - 2 * COMMON(i, k))

#if SPLIT == 1
#ifdef THRESHOLD
  int4 limits[LANE_FILTERS / 4];
#endif
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = first_pixel + 8 * i + row;
    if (pixel < pixels && channel < OUT_C) {
      uint packed = 0;
#ifdef THRESHOLD
      if (i == 0 || class[i] != class[i - 1]) {
#pragma unroll
        for (int k = 0; k < LANE_FILTERS / 4; ++k)
          limits[k] = ((__global const int4*)(table + class[i] * TABLE_C + channel))[k];
      }
#pragma unroll
      for (int k = LANE_FILTERS / 4 - 1; k >= 0; --k) {
        const int4 less = ONES(i) - limits[k];
        const int4 sign = less - 2 * COMMON(i, k);
        packed = packed << 1 | (uint)sign.w >> 31;
        packed = packed << 1 | (uint)sign.z >> 31;
        packed = packed << 1 | (uint)sign.y >> 31;
        packed = packed << 1 | (uint)sign.x >> 31;
      }
#else
      __global const int* limits = table + class[i] * TABLE_C;
#pragma unroll
      for (int k = 0; k < LANE_FILTERS / 4; ++k)
        packed += finish4(as_uint4(FOUR(i, k)), limits, pixel, channel + 4 * k SINK_ARGS) << (4 * k);
#endif
      STORE_LANE_BITS(pixel, channel, packed SINK_ARGS);
    }
  }
#else
#define QUADS (ROWS * LANE_FILTERS / 4)
  __local int4 partial[SPLIT * WARPS * QUADS * 32];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#pragma unroll
    for (int k = 0; k < LANE_FILTERS / 4; ++k)
      partial[((split * WARPS + warp) * QUADS + i * (LANE_FILTERS / 4) + k) * 32 + lane] = FOUR(i, k);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int pair = split; pair < QUADS / 2; pair += SPLIT) {
    const int i = pair / (LANE_FILTERS / 8), eight = channel + pair % (LANE_FILTERS / 8) * 8;
    const int pixel = first_pixel + 8 * i + row;
    if (pixel < pixels && eight < OUT_C) {
      __global const int* limits = TABLE_ROW(table, borders, PIXEL_Y(pixel), PIXEL_X(pixel));
      int4 low = 0, high = 0;
#pragma unroll
      for (int s = 0; s < SPLIT; ++s) {
        low += partial[((s * WARPS + warp) * QUADS + 2 * pair) * 32 + lane];
        high += partial[((s * WARPS + warp) * QUADS + 2 * pair + 1) * 32 + lane];
      }
#ifdef EARLY
      if (pair != split) {
        entry_low = ((__global const int4*)(limits + eight))[0];
        entry_high = ((__global const int4*)(limits + eight))[1];
      }
      low -= entry_low;
      high -= entry_high;
      const uint packed = ((uint)low.x >> 31) | ((uint)low.y >> 31) << 1 | ((uint)low.z >> 31) << 2 | ((uint)low.w >> 31) << 3 |
        ((uint)high.x >> 31) << 4 | ((uint)high.y >> 31) << 5 | ((uint)high.z >> 31) << 6 | ((uint)high.w >> 31) << 7;
#else
      const uint packed = finish4(as_uint4(low), limits, pixel, eight SINK_ARGS) +
                          (finish4(as_uint4(high), limits, pixel, eight + 4 SINK_ARGS) << 4);
#endif
      store_bits8(pixel, eight, packed SINK_ARGS);
    }
  }
#endif
}
