// @kernel   bconv2d_tiled   binary convolution; registers hold TILE_PIXELS x TILE_FILTERS counts
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, uint* input, uint* weights, int* table, ushort* borders, SINK
// @weights  tiled
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS) * (1 + RUN_ON * (ceil(channels / 32) - 1)), GROUP_SIZE), max(1, (1 - RUN_ON) * ceil(channels / 32)) * 32 / TILE_FILTERS), local = (GROUP_SIZE, 32 / TILE_FILTERS)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4} = 2   output pixels per work-item
// @tune     TILE_FILTERS {8,16,32} = 8   filters per work-item
// @tune     VECTOR_WORDS {1,2,4} = 4   words per load, halved until they divide IN_WORDS
// @tune     COUNT {0,1} = 0   0: a popcount per word; 1: full adders over the window, a popcount per vector of two or four words
// @tune     ACCUMULATOR {0,1} = 0   counts are 0: 32-bit, 1: 16-bit numbers
// @tune     RUN_ON {0,1} = 0   a group that is not full at the map's last pixel: 0: stays so; 1: goes on with the next 32 filters
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items over the pixels of a group; 32 / TILE_FILTERS times as many share its words of bits
// @requires GROUPS = 1; ACCUMULATOR 1: KERNEL_H * KERNEL_W * IN_C < 65536
// @ref      BINARY_CONV2D   @source PhoneBit VI-B, fig. 4 (a work-item packs the bits of its filters); tile and carry-save: own
#if RUN_ON
#define PIXEL_STEP item_pixels
#endif
#include "common/tile.clh"
#include "common/window_walk.clh"
#define HAS_CHANNELS (!(RUN_ON || TILES_OVERHANG(32)) || channel < END_CHANNEL)

// Work-items that follow each other share their filters, so weights come from uniform addresses, but where a group runs
// on. Checked with Mesa's compilers for Adreno 730 and Mali G610: no scratch memory; no spills in tiles up to 2x8. With
// full adders a pair of a pixel and a filter has three registers instead of one or a half: tiles of 16 pairs leave
// Adreno eight waves.
//
// While adders are empty, half of a vector's steps fall away: the first tap is counted apart from the loops. With one
// vector per pixel, compilers unroll the loops, which gains more.
#define FIRST_TAP (COUNT && PIXEL_VECTORS > 1)
#define LOAD_VECTOR(p, a) map_words[p] = READ(p, q, q);
#define CLEAR_ADDERS(p, f) adders[p][f].ones = adders[p][f].twos = 0;
#define ADD_UP(p, f) counts[p][f] = add_up(counts[p][f], adders[p][f]);
#if COUNT
#define COUNT_PAIR(p, f) counts[p][f] += add_vector(&adders[p][f], map_words[p] ^ b);
#else
#define COUNT_PAIR(p, f) counts[p][f] += count_bits(map_words[p] ^ b);
#endif
#define COUNT_FILTER(f, a)                            \
  {                                                   \
    const words_t b = READ_AT(weights, filters, (f)); \
    EACH_PIXEL(COUNT_PAIR, f)                         \
  }
#define COUNT_VECTOR                    \
  EACH_PIXEL(LOAD_VECTOR, 0)            \
  REPEAT(TILE_FILTERS, COUNT_FILTER, 0) \
  filters += TILE_FILTERS;
#define CLEAR_FILTER(f, a) EACH_PIXEL(CLEAR_ADDERS, f)
#define ADD_UP_FILTER(f, a) EACH_PIXEL(ADD_UP, f)

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, WORD_TILES, 1))) void bconv2d_tiled(
    int first_pixel, int end_pixel, __global const words_t* restrict input, __global const words_t* restrict weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  SHARED_BITS(GROUP_ITEMS * TILE_PIXELS)
#if RUN_ON
  const int item_pixels = (end_pixel - first_pixel + TILE_PIXELS - 1) / TILE_PIXELS;  // work-items of a tile of filters
  const int word = (int)((uint)get_global_id(0) / (uint)item_pixels);
  const int item_pixel = first_pixel + (int)get_global_id(0) - word * item_pixels;
#else
  const int word = get_group_id(1), item_pixel = ITEM_PIXEL;
#endif
  const int tile = FIRST_CHANNEL / TILE_FILTERS + word * WORD_TILES + (int)get_local_id(1);
  const int channel = tile * TILE_FILTERS;
  uint packed[TILE_PIXELS];
  EACH_PIXEL(CLEAR_PACKED, 0)
  if (HAS_RESULT(0)) {
    count_t counts[TILE_PIXELS][TILE_FILTERS];
    REPEAT(TILE_FILTERS, CLEAR_COUNTS, 0)
    int from[TILE_PIXELS], tap[TILE_PIXELS], in_y[TILE_PIXELS], in_x[TILE_PIXELS], inside[TILE_PIXELS];
    EACH_PIXEL(PLACE, 0)
    PLACE_IN(words_t, filters, weights, tile * (WINDOW_VECTORS * TILE_FILTERS));
    words_t map_words[TILE_PIXELS];
#if COUNT
    adders_t adders[TILE_PIXELS][TILE_FILTERS];
    REPEAT(TILE_FILTERS, CLEAR_FILTER, 0)
#endif
    if (FIRST_TAP) {
      {
        const int ky = 0, kx = 0, q = 0;
        EACH_PIXEL(FIND_TAP, 0)
        COUNT_VECTOR
      }
      for (int q = 1; q < PIXEL_VECTORS; ++q) {
        COUNT_VECTOR
      }
      EACH_PIXEL(MOVE, DILATION_W * PIXEL_VECTORS)
    }

    for (int ky = 0; ky < KERNEL_H; ++ky) {
      for (int kx = FIRST_TAP && ky == 0; kx < KERNEL_W; ++kx) {
        EACH_PIXEL(FIND_TAP, 0)
        for (int q = 0; q < PIXEL_VECTORS; ++q) {
          COUNT_VECTOR
        }
        EACH_PIXEL(MOVE, DILATION_W * PIXEL_VECTORS)
      }
      EACH_PIXEL(MOVE, (DILATION_H * IN_W - KERNEL_W * DILATION_W) * PIXEL_VECTORS)
    }
#if COUNT
    REPEAT(TILE_FILTERS, ADD_UP_FILTER, 0)
#endif
    EACH_PIXEL(FINISH_PIXEL, 0)
  }
  STORE_PIXELS
}
