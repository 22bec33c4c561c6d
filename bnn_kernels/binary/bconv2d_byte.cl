// @kernel   bconv2d_byte   binary convolution as in the paper: a work-item makes one byte, 8 filters of one pixel
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit, or eq. 9; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, uint* positive, SINK
// @weights  canonical
// @geometry global = (roundup(pixels, GROUP_SIZE), ceil(channels / 32) * 4), local = (GROUP_SIZE, 4)
// @channels 8
// @tune     GRANULARITY {8,16,32,64,128,256,512,1024} = 32   bits per load
// @tune     COMPARE {0,1} = 0   0: the sign of gamma is folded into weights and limits; 1: PhoneBit's Karnaugh form
// @tune     GROUP_SIZE {16,32,64} = 64   work-items over the pixels of a group; four times as many share its words of bits
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
#define ITEM_BITS 8
#include "common/shared_words.clh"

// A load is of one element, from 128 bits on of LOADS pairs of 64: wider vectors do not cross calls (README.md, "Wide
// vectors").
#if GRANULARITY == 8
typedef uchar chunk_t;
#elif GRANULARITY == 16
typedef ushort chunk_t;
#elif GRANULARITY == 32
typedef uint chunk_t;
#elif GRANULARITY == 64
typedef ulong chunk_t;
#else
typedef ulong2 chunk_t;
#endif
#if GRANULARITY <= 64
#define ELEMENT_BITS GRANULARITY
#define COUNT_CHUNK(chunk) ((int)popcount(chunk))
#else
#define ELEMENT_BITS 128
#define COUNT_CHUNK(chunk) count_pair(chunk)
int count_pair(ulong2 x) {
  const ulong2 n = popcount(x);
  return (int)(n.x + n.y);
}
#endif
#define LOADS (GRANULARITY / ELEMENT_BITS)
#define TAP_CHUNKS (32 * IN_WORDS / ELEMENT_BITS)

// A padded tap reads as zeros, so its chunks count popcount(w). Where it stands for ones it must count
// popcount(not w within IN_C bits) = IN_C - popcount(w).
#define FILTER_CHUNKS (KERNEL_H * KERNEL_W * TAP_CHUNKS)
#define COUNT_FILTER(f, a)                                             \
  {                                                                    \
    int n = 0;                                                         \
    _Pragma("unroll") for (int k = 0; k < LOADS; ++k) {                \
      const chunk_t difference = x[k] ^ READ_AT(weights, filters, rows[f] + k);  \
      n += COUNT_CHUNK(difference);                                    \
    }                                                                  \
    counts[f] += PADDED && PAD_BITS && !inside ? -n : n;               \
  }
#define COUNT_ONES(f, a) counts[f] += IN_C;
// Filters beyond the last one repeat it; without any the offsets are constants and cost no registers.
#if OUT_C % 8 == 0
#define FILTER_ROW(f) (f)
#else
#define FILTER_ROW(f) (min(channel + (f), OUT_C - 1) - channel)
#endif
#define START_FILTER(f, a) \
  counts[f] = 0;           \
  rows[f] = FILTER_ROW(f) * FILTER_CHUNKS;
#define FINISH_QUAD(i, a)                                                                                                 \
  packed = finish4(packed, VECTOR_4(uint, counts[4 * (i)], counts[4 * (i) + 1], counts[4 * (i) + 2], counts[4 * (i) + 3]), \
                   table, entries, pixel, channel + 4 * (i) SINK_ARGS);
#define COMPARE_FILTER(f, a)                                                   \
  less += 2 * counts[f] > table[entries + channel + (f)] ? 1u << (f) : 0u;     \
  equal += 2 * counts[f] == table[entries + channel + (f)] ? 1u << (f) : 0u;

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 4, 1))) void bconv2d_byte(
    int first_pixel, int end_pixel, __global const chunk_t* restrict input, __global const chunk_t* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders,
    __global const uint* restrict positive SINK_PARAMS) {
  SHARED_BITS(GROUP_SIZE * 4)
  const int pixel = first_pixel + (int)get_global_id(0);
  const int channel = FIRST_CHANNEL + (int)get_global_id(1) * 8;
  const int has_bits = pixel < end_pixel && (!TILES_OVERHANG(32) || channel < END_CHANNEL);
  uint packed = 0;
  if (has_bits) {
    const int y = PIXEL_Y(pixel), x0 = PIXEL_X(pixel);
    int counts[8], rows[8];
    REPEAT(8, START_FILTER, 0)
    PLACE_IN(chunk_t, filters, weights, channel * FILTER_CHUNKS);
    for (int ky = 0; ky < KERNEL_H; ++ky) {
      const int in_y = TAP_Y(y, ky);
      for (int kx = 0; kx < KERNEL_W; ++kx) {
        const int in_x = TAP_X(x0, kx);
        const int inside = INSIDE(in_y, in_x);
        const int tap = inside ? ((PIXEL_IMAGE(pixel) * IN_H + in_y) * IN_W + in_x) * TAP_CHUNKS : 0;
#if PADDED && PAD_BITS
        if (!inside) {
          REPEAT(8, COUNT_ONES, 0)
        }
#endif
        for (int i = 0; i < TAP_CHUNKS; i += LOADS, filters += LOADS) {
          chunk_t x[LOADS];
#pragma unroll
          for (int k = 0; k < LOADS; ++k) {
            x[k] = input[tap + i + k];
#if PADDED
            x[k] = inside ? x[k] : (chunk_t)(0);
#endif
          }
          REPEAT(8, COUNT_FILTER, 0)
        }
      }
    }
    const int entries = TABLE_ENTRIES(borders, y, x0);
#if COMPARE
    uint less = 0, equal = 0;
    REPEAT(8, COMPARE_FILTER, 0)
    packed = ((less ^ positive[QUOTIENT(channel, 32)] >> REMAINDER(channel, 32)) | equal) & 0xffu;
#if OUT_C % 8 != 0
    if (channel + 8 > OUT_C) packed &= (1u << OUT_C % 8) - 1u;
#endif
#else
    REPEAT(2, FINISH_QUAD, 0)
    packed = ADDED_BITS(packed, 8);
#endif
  }
  PUT_BITS(has_bits, ITEM_IN_GROUP, pixel, channel, packed)
  WAIT_FOR_BITS
  STORE_WORD(IS_FIRST_OF_WORD && has_bits, ITEM_IN_GROUP, GROUP_SIZE, pixel, QUOTIENT(channel, 32), packed)
}
