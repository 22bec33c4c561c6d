// @kernel   bconv2d_lanes   binary convolution for processors with vector registers: lanes are filters
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  tiled
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS), GROUP_SIZE), ceil(channels / TILE_FILTERS)), local = (GROUP_SIZE, 1)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4} = 1   output pixels per work-item
// @tune     TILE_FILTERS {32} = 32   filters at a time, 16 per vector
// @tune     VECTOR_WORDS {1} = 1   words per load of the map: each goes to all lanes
// @tune     GROUP_SIZE {1,8,32} = 8   work-items per group, over pixels
// @requires GROUPS = 1
// @ref      BINARY_CONV2D   @source own: the CPU backend's layout, in OpenCL's vectors; adders after Harley and Seal
#include "common/tile.clh"
#include "common/window_walk.clh"

// OpenCL compilers for CPUs make vectors of neighbouring work-items, if they find that worthwhile: what bconv2d_tiled
// reaches by that varies by a factor of eight from layer to layer (PoCL). Here the vectors are written out, so they
// leave nothing to find.
#define LANES 16
typedef uint16 lanes_t;
#define TILE_VECTORS 2

// The kernel's functions take lanes by pointer: no vector as wide crosses a call (README.md, "Wide vectors").
// `words` begins at a multiple of 16 bytes.
#define READ_QUAD(words, q) ((__global const uint4*)(words))[q]
#define READ_LANES(words) ((lanes_t)(READ_QUAD(words, 0), READ_QUAD(words, 1), READ_QUAD(words, 2), READ_QUAD(words, 3)))

// Adds each lane's popcount to `counts`. OpenCL's popcount is taken lane by lane; this form compilers know to be the
// vector's.
void count_lanes(lanes_t* counts, const lanes_t* bits) {
  lanes_t x = *bits;
  x -= (x >> 1) & 0x55555555u;
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  *counts += (x * 0x01010101u) >> 24;
}

// a + b + c of each bit as a + 2 carry.
#define ADD_BITS(carry, a, b, c)                       \
  const lanes_t carry = (a & (b)) | ((c) & (a | (b))); \
  a ^= (b) ^ (c);

// Bits counted so far: 8 eights + those of the words fours, twos and ones, as often as their names say, + rest.
typedef struct {
  lanes_t eights, fours, twos, ones, rest;
} sum_t;

void add_eight(sum_t* sum, const lanes_t* x) {
  ADD_BITS(twos_a, sum->ones, x[0], x[1])
  ADD_BITS(twos_b, sum->ones, x[2], x[3])
  ADD_BITS(fours_a, sum->twos, twos_a, twos_b)
  ADD_BITS(twos_c, sum->ones, x[4], x[5])
  ADD_BITS(twos_d, sum->ones, x[6], x[7])
  ADD_BITS(fours_b, sum->twos, twos_c, twos_d)
  ADD_BITS(eights, sum->fours, fours_a, fours_b)
  count_lanes(&sum->eights, &eights);
}

void total(lanes_t* counts, const sum_t* sum) {
  *counts = 2 * sum->eights;
  count_lanes(counts, &sum->fours);
  *counts *= 2;
  count_lanes(counts, &sum->twos);
  *counts *= 2;
  count_lanes(counts, &sum->ones);
  *counts += sum->rest;
}

#define CLEAR_SUM(p, f) \
  sums[p][f].eights = sums[p][f].fours = sums[p][f].twos = sums[p][f].ones = sums[p][f].rest = (lanes_t)(0);
#define CLEAR_SUMS(f, a) EACH_PIXEL(CLEAR_SUM, f)
#define FILTERS(v, f) READ_LANES(filter_words + (v) * TILE_FILTERS + LANES * (f))
#define DIFFERENCE(p, v) ((lanes_t)(map_words[p][v]) ^ b##v)
#define ADD_EIGHT(p, f)                                                                                  \
  {                                                                                                      \
    const lanes_t differences[8] = {DIFFERENCE(p, 0), DIFFERENCE(p, 1), DIFFERENCE(p, 2),                \
                                    DIFFERENCE(p, 3), DIFFERENCE(p, 4), DIFFERENCE(p, 5),                \
                                    DIFFERENCE(p, 6), DIFFERENCE(p, 7)};                                 \
    add_eight(&sums[p][f], differences);                                                                 \
  }
#define ADD_BLOCK(f, a)                                                                           \
  {                                                                                               \
    const lanes_t b0 = FILTERS(0, f), b1 = FILTERS(1, f), b2 = FILTERS(2, f), b3 = FILTERS(3, f), \
                  b4 = FILTERS(4, f), b5 = FILTERS(5, f), b6 = FILTERS(6, f), b7 = FILTERS(7, f); \
    EACH_PIXEL(ADD_EIGHT, f)                                                                      \
  }
#define ADD_ONE(p, f)                        \
  {                                          \
    const lanes_t x = DIFFERENCE(p, 0);      \
    count_lanes(&sums[p][f].rest, &x);       \
  }
#define ADD_WORD(f, a)                \
  {                                   \
    const lanes_t b0 = FILTERS(0, f); \
    EACH_PIXEL(ADD_ONE, f)            \
  }

#ifdef THRESHOLD
// Bit i: lane i is below its limit.
uint bits_below(const lanes_t* d, __global const int* limits) {
  const lanes_t below = as_uint16(as_int16(*d) < as_int16(READ_LANES(limits))) &
                        (lanes_t)(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768);
  const uint8 eight = below.lo | below.hi;
  const uint4 four = eight.lo | eight.hi;
  return (four.x | four.y) | (four.z | four.w);
}
#define FINISH_VECTOR(f, p)                                                        \
  {                                                                                \
    lanes_t d;                                                                     \
    total(&d, &sums[p][f]);                                                        \
    packed |= bits_below(&d, table + entries + channel + LANES * (f)) << (LANES * (f)); \
  }
#else
#define FINISH_VECTOR(f, p)                                                  \
  {                                                                          \
    lanes_t d;                                                               \
    total(&d, &sums[p][f]);                                                  \
    const int c = channel + LANES * (f);                                     \
    packed = finish4(packed, d.s0123, table, entries, TILE_PIXEL(p), c SINK_ARGS);      \
    packed = finish4(packed, d.s4567, table, entries, TILE_PIXEL(p), c + 4 SINK_ARGS);  \
    packed = finish4(packed, d.s89ab, table, entries, TILE_PIXEL(p), c + 8 SINK_ARGS);  \
    packed = finish4(packed, d.scdef, table, entries, TILE_PIXEL(p), c + 12 SINK_ARGS); \
  }
#endif
#define FINISH_SUMS(p, a)                                                                                \
  if (TILE_PIXEL(p) < end_pixel) {                                                                       \
    const int entries = TABLE_ENTRIES(borders, PIXEL_Y(TILE_PIXEL(p)), PIXEL_X(TILE_PIXEL(p)));          \
    uint packed = 0;                                                                                     \
    REPEAT(TILE_VECTORS, FINISH_VECTOR, p)                                                               \
    store_word(TILE_PIXEL(p), QUOTIENT(channel, 32), packed SINK_ARGS);                                                \
  }

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void bconv2d_lanes(
    int first_pixel, int end_pixel, __global const words_t* restrict input, __global const uint* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  const int item_pixel = ITEM_PIXEL;
  if (item_pixel >= end_pixel) return;
  const int tile = FIRST_CHANNEL / TILE_FILTERS + (int)get_global_id(1), channel = tile * TILE_FILTERS;
  __global const uint* filter_words = weights + tile * (WINDOW_VECTORS * TILE_FILTERS);
  sum_t sums[TILE_PIXELS][TILE_VECTORS];
  REPEAT(TILE_VECTORS, CLEAR_SUMS, 0)
  words_t map_words[TILE_PIXELS][8];
  int from[TILE_PIXELS], tap[TILE_PIXELS], in_y[TILE_PIXELS], in_x[TILE_PIXELS], inside[TILE_PIXELS];
  EACH_PIXEL(PLACE, 0)

  int ky = 0, kx = 0, q = 0;
  for (int block = 0; block < WINDOW_VECTORS / 8; ++block) {
    REPEAT(8, LOAD_NEXT_VECTOR, 0)
    REPEAT(TILE_VECTORS, ADD_BLOCK, 0)
    filter_words += 8 * TILE_FILTERS;
  }
  for (int rest = 0; rest < WINDOW_VECTORS % 8; ++rest) {
    LOAD_NEXT_VECTOR(0, 0)
    REPEAT(TILE_VECTORS, ADD_WORD, 0)
    filter_words += TILE_FILTERS;
  }

  EACH_PIXEL(FINISH_SUMS, 0)
}
