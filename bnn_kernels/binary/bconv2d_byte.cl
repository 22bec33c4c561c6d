// @kernel   bconv2d_byte   binary convolution as in the paper: a work-item makes one byte, 8 filters of one pixel
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit, or eq. 9; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, uint* positive, SINK
// @weights  canonical
// @geometry global = (roundup(pixels, GROUP_SIZE), ceil(channels / 8)), local = (GROUP_SIZE, 1)
// @channels 8
// @tune     GRANULARITY {8,16,32,64,128,256,512,1024} = 32   bits a load
// @tune     COMPARE {0,1} = 0   0: the sign of gamma is folded into weights and limits; 1: PhoneBit's Karnaugh form
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items a group, over pixels
// @requires GROUPS = 1; GRANULARITY divides 32 * IN_WORDS; COMPARE 1: THRESHOLD, IN_C <= 256 (VI-B)
// @ref      BINARY_CONV2D   @source PhoneBit V-A (granularity), VI-B fig. 4 (byte), VI-C eq. 9 (comparison)
//
// COMPARE 1. PhoneBit's eq. 8, with x1 the accumulator, xi the threshold:
//   gamma > 0: bit = x1 >= xi;  gamma < 0: bit = x1 <= xi.
// With A: x1 < xi, B: gamma > 0, C: x1 == xi this is (A xor B) or C, eq. 9:
//   B = 1: (not A) or C = x1 >= xi;  B = 0: A or C = x1 <= xi.
// Our counts are d with acc = base - 2 d, and the table holds room = base - xi, so that
//   A <=> base - 2 d < xi <=> 2 d > room,  C <=> 2 d == room.
// `positive` holds B as bits, OUT_WORDS words; eight channels are decided in one byte operation.
#include "common/counts.clh"
#include "common/words.clh"

#if GRANULARITY == 8
typedef uchar chunk_t;
#define LOAD_CHUNK(p, i) ((__global const uchar*)(p))[i]
#elif GRANULARITY == 16
typedef ushort chunk_t;
#define LOAD_CHUNK(p, i) ((__global const ushort*)(p))[i]
#elif GRANULARITY == 32
typedef uint chunk_t;
#define LOAD_CHUNK(p, i) (p)[i]
#elif GRANULARITY == 64
typedef ulong chunk_t;
#define LOAD_CHUNK(p, i) ((__global const ulong*)(p))[i]
#else
#define LOAD_PAIR(p, i) vload2(i, (__global const ulong*)(p))
#if GRANULARITY == 128
typedef ulong2 chunk_t;
#define LOAD_CHUNK(p, i) LOAD_PAIR(p, i)
#elif GRANULARITY == 256
typedef ulong4 chunk_t;
#define LOAD_CHUNK(p, i) ((ulong4)(LOAD_PAIR(p, 2 * (i)), LOAD_PAIR(p, 2 * (i) + 1)))
#else
#define LOAD_EIGHT(p, i) \
  ((ulong8)(LOAD_PAIR(p, 4 * (i)), LOAD_PAIR(p, 4 * (i) + 1), LOAD_PAIR(p, 4 * (i) + 2), LOAD_PAIR(p, 4 * (i) + 3)))
#if GRANULARITY == 512
typedef ulong8 chunk_t;
#define LOAD_CHUNK(p, i) LOAD_EIGHT(p, i)
#else
typedef ulong16 chunk_t;
#define LOAD_CHUNK(p, i) ((ulong16)(LOAD_EIGHT(p, 2 * (i)), LOAD_EIGHT(p, 2 * (i) + 1)))
#endif
#endif
#endif
#define TAP_CHUNKS (32 * IN_WORDS / GRANULARITY)

// The ones of a variable. By address and in pairs: no vector of more than 128 bits crosses a call (README.md, "Wide vectors").
#if GRANULARITY <= 64
#define COUNT_CHUNK(word) ((int)popcount(word))
#else
#define COUNT_CHUNK(chunk) count_chunk(&(chunk))
int count_chunk(const chunk_t* x) {
  ulong2 n = popcount(x->s01);
#if GRANULARITY >= 256
  n += popcount(x->s23);
#endif
#if GRANULARITY >= 512
  n += popcount(x->s45) + popcount(x->s67);
#endif
#if GRANULARITY == 1024
  n += popcount(x->s89) + popcount(x->sab) + popcount(x->scd) + popcount(x->sef);
#endif
  return (int)(n.x + n.y);
}
#endif

// A padded tap reads as zeros, so its chunks count popcount(w). Where it stands for ones it must count
// popcount(not w within IN_C bits) = IN_C - popcount(w).
#define FILTER_WORDS (KERNEL_H * KERNEL_W * IN_WORDS)
#define COUNT_FILTER(f, a)                                                         \
  {                                                                                \
    const chunk_t difference = x ^ LOAD_CHUNK(tap_weights + row_words[f], i);      \
    const int n = COUNT_CHUNK(difference);                                         \
    counts[f] += PADDED && PAD_BITS && !inside ? -n : n;                           \
  }
#define COUNT_ONES(f, a) counts[f] += IN_C;
// Filters beyond the last one repeat it; without any the offsets are constants and cost no registers.
#if OUT_C % 8 == 0
#define FILTER_ROW(f) (f)
#else
#define FILTER_ROW(f) (min(channel + (f), OUT_C - 1) - channel)
#endif
#define START_FILTER(f, a)                  \
  counts[f] = 0;                            \
  row_words[f] = FILTER_ROW(f) * FILTER_WORDS;
#define FINISH_QUAD(i, a)                                                                                          \
  packed += finish4((uint4)(counts[4 * (i)], counts[4 * (i) + 1], counts[4 * (i) + 2], counts[4 * (i) + 3]), row, \
                    pixel, channel + 4 * (i) SINK_ARGS)                                                            \
            << 4 * (i);
#define COMPARE_FILTER(f, a)                                 \
  less += 2 * counts[f] > row[channel + (f)] ? 1u << (f) : 0u;   \
  equal += 2 * counts[f] == row[channel + (f)] ? 1u << (f) : 0u;

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bconv2d_byte(
    int first_pixel, int end_pixel, __global const uint* restrict input, __global const uint* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders,
    __global const uint* restrict positive SINK_PARAMS) {
  const int pixel = first_pixel + (int)get_global_id(0);
  const int channel = FIRST_CHANNEL + (int)get_global_id(1) * 8;
  if (pixel >= end_pixel) return;
  const int y = PIXEL_Y(pixel), x0 = PIXEL_X(pixel);
  int counts[8], row_words[8];
  REPEAT(8, START_FILTER, 0)
  __global const uint* tap_weights = weights + channel * FILTER_WORDS;
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int in_y = TAP_Y(y, ky);
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int in_x = TAP_X(x0, kx);
      const int inside = INSIDE(in_y, in_x);
      __global const uint* tap =
          input + (inside ? ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * IN_WORDS : 0);
#if PADDED && PAD_BITS
      if (!inside) {
        REPEAT(8, COUNT_ONES, 0)
      }
#endif
      for (int i = 0; i < TAP_CHUNKS; ++i) {
        chunk_t x = LOAD_CHUNK(tap, i);
#if PADDED
        x = inside ? x : (chunk_t)(0);
#endif
        REPEAT(8, COUNT_FILTER, 0)
      }
      tap_weights += IN_WORDS;
    }
  }
  __global const int* row = TABLE_ROW(table, borders, y, x0);
  uint packed = 0;
#if COMPARE
  uint less = 0, equal = 0;
  REPEAT(8, COMPARE_FILTER, 0)
  packed = ((less ^ ((__global const uchar*)positive)[channel / 8]) | equal) & 0xffu;
#if OUT_C % 8 != 0
  if (channel + 8 > OUT_C) packed &= (1u << OUT_C % 8) - 1u;
#endif
#else
  REPEAT(2, FINISH_QUAD, 0)
#endif
  store_bits8(pixel, channel, packed SINK_ARGS);
}
