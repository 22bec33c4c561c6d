// @kernel   bconv2d_image   binary convolution that reads map and weights through the texture unit
// @math     d = popcount(in ^ w) over all taps, padded ones as PAD_BITS; threshold: bit = d < limit; epilogue: acc = base - 2 d (common/counts.clh)
// @args     int first_pixel, int end_pixel, image2d input, image2d weights, int* table, ushort* borders, SINK
// @weights  image
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS), GROUP_SIZE), ceil(channels / 32) * 32 / TILE_FILTERS), local = (GROUP_SIZE, 32 / TILE_FILTERS)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2,4} = 2   output pixels per work-item
// @tune     TILE_FILTERS {8,16} = 8   filters per work-item
// @tune     ACCUMULATOR {0,1} = 0   counts are 0: 32-bit, 1: 16-bit numbers
// @tune     GROUP_SIZE {32,64,128,256} = 64   work-items over the pixels of a group; 32 / TILE_FILTERS times as many share its words of bits
// @requires images; GROUPS = 1; 4 divides IN_WORDS; ACCUMULATOR 1: KERNEL_H * KERNEL_W * IN_C < 65536
// @ref      BINARY_CONV2D   @source own; the register tile of bconv2d_tiled
//
// Input: RGBA32UI, texel (x * IN_WORDS / 4 + q, n * IN_H + y). Weights: texel (tap * IN_WORDS / 4 + q, filter).
// Textures have a cache and addressing of their own on Adreno and leave Mali's load unit free.
#define VECTOR_WORDS 4
#include "common/tile.clh"
#define HAS_CHANNELS (!TILES_OVERHANG(32) || channel < END_CHANNEL)

// Texels outside read as 0. A padded tap is sent to column -1, for in a batch the row above belongs to another image.
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

#define PLACE(p, a)                                             \
  const int pixel##p = min(TILE_PIXEL(p), end_pixel - 1);       \
  in_y[p] = TAP_Y(PIXEL_Y(pixel##p), 0);                        \
  in_x[p] = TAP_X(PIXEL_X(pixel##p), 0);                        \
  image_row[p] = PIXEL_IMAGE(pixel##p) * IN_H + in_y[p];

#if PADDED
#define FIND_TAP(p, a)                                                                        \
  inside[p] = INSIDE(in_y[p] + ky * DILATION_H, in_x[p] + kx * DILATION_W);                   \
  texel[p] = inside[p] ? (in_x[p] + kx * DILATION_W) * PIXEL_VECTORS : -PIXEL_VECTORS;
#else
#define FIND_TAP(p, a) texel[p] = (in_x[p] + kx * DILATION_W) * PIXEL_VECTORS;
#endif
#define READ(p) read_imageui(input, nearest, VECTOR_2(int, texel[p] + q, image_row[p] + ky * DILATION_H))
#if PADDED && PAD_BITS
#define LOAD(p, a) map_words[p] = choose_words(inside[p], READ(p), PAD_WORDS(q));
#else
#define LOAD(p, a) map_words[p] = READ(p);
#endif

#define COUNT_PAIR(p, f) counts[p][f] += count_bits(map_words[p] ^ b);
#define COUNT_FILTER(f, a)                                                              \
  {                                                                                     \
    const words_t b = read_imageui(weights, nearest, VECTOR_2(int, vector, channel + (f)));    \
    EACH_PIXEL(COUNT_PAIR, f)                                                           \
  }

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, WORD_TILES, 1))) void bconv2d_image(
    int first_pixel, int end_pixel, __read_only image2d_t input, __read_only image2d_t weights,
    __global const int* restrict table, __global const ushort* restrict borders SINK_PARAMS) {
  SHARED_BITS(GROUP_ITEMS * TILE_PIXELS)
  const int item_pixel = ITEM_PIXEL, word = get_group_id(1);
  const int channel = FIRST_CHANNEL + word * 32 + (int)get_local_id(1) * TILE_FILTERS;
  uint packed[TILE_PIXELS];
  EACH_PIXEL(CLEAR_PACKED, 0)
  if (HAS_RESULT(0)) {
    count_t counts[TILE_PIXELS][TILE_FILTERS];
    REPEAT(TILE_FILTERS, CLEAR_COUNTS, 0)
    words_t map_words[TILE_PIXELS];
    int in_y[TILE_PIXELS], in_x[TILE_PIXELS], image_row[TILE_PIXELS], texel[TILE_PIXELS], inside[TILE_PIXELS];
    EACH_PIXEL(PLACE, 0)
    int vector = 0;
    for (int ky = 0; ky < KERNEL_H; ++ky) {
      for (int kx = 0; kx < KERNEL_W; ++kx) {
        EACH_PIXEL(FIND_TAP, 0)
        for (int q = 0; q < PIXEL_VECTORS; ++q) {
          EACH_PIXEL(LOAD, 0)
          REPEAT(TILE_FILTERS, COUNT_FILTER, 0)
          ++vector;
        }
      }
    }
    EACH_PIXEL(FINISH_PIXEL, 0)
  }
  STORE_PIXELS
}
