// @kernel   conv2d_u8_planes   convolution of u8 pixels with weights of +1/-1 on the bit-planes of split_planes
// @math     x = sum over i of 2^i x_i, so S = sum w x = sum over i of 2^i (2 popcount(x_i & w) - popcount(x_i));
//           acc = INPUT_MUL S + INPUT_ADD (sum of w over taps inside the map); THRESHOLD: bit = acc >= table[c]
// @args     int first_pixel, int end_pixel, uint* planes, uint* weights, int* table, SINK
// @in       as split_planes writes it
// @weights  planes: uint [WINDOW_WORDS][32 * OUT_WORDS], bit t % 32 of word t / 32 is tap t of the filter, 1 = +1;
//           tail bits and filters from OUT_C on are 0
// @geometry global = (roundup(ceil(pixels / TILE_PIXELS) * ceil(roundup(channels, CHANNEL_UNIT) / TILE_FILTERS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,2} = 1   output pixels per work-item
// @tune     TILE_FILTERS {4,8,16,32} = 8   output channels per work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == 1; TILE_FILTERS >= 8 where HAS_BITS or THRESHOLD
// @ref      CONV2D of u8   @source PhoneBit III-B, eq. 2
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"

#define TAPS (KERNEL_H * KERNEL_W * IN_C)
#define WINDOW_WORDS ((TAPS + 31) / 32)

// sum over planes of 2^i popcount(x_i & w), by Horner's rule; low holds planes 0 to 3, high 4 to 7.
#define NEXT_PLANE(x) sum = sum + sum + as_int4(popcount(w & (x)));
int4 weighted_ones(uint4 low, uint4 high, uint4 w) {
  int4 sum = as_int4(popcount(w & high.w));
  NEXT_PLANE(high.z)
  NEXT_PLANE(high.y)
  NEXT_PLANE(high.x)
  NEXT_PLANE(low.w)
  NEXT_PLANE(low.z)
  NEXT_PLANE(low.y)
  NEXT_PLANE(low.x)
  return sum;
}

__kernel void conv2d_u8_planes(
    int first_pixel, int end_pixel, __global const uint* restrict planes, __global const uint* restrict weights,
                               __global const int* restrict table SINK_PARAMS) {
  SHARED_TILES(TILE_PIXELS)
  const int id = get_global_id(0);
  const int pixel0 = first_pixel + QUOTIENT(id, CHANNEL_TILES) * TILE_PIXELS;
  const int filter0 = FIRST_CHANNEL + REMAINDER(id, CHANNEL_TILES) * TILE_FILTERS;
  if (!SHARES_WORDS && pixel0 >= end_pixel) return;

  // total is S plus twice what -1 taps hold: S = 2 sum - total. The same with in_* for taps inside the map.
  int4 sum[TILE_PIXELS][TILE_VECTORS], in_sum[TILE_PIXELS][TILE_VECTORS];
  int total[TILE_PIXELS], in_total[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
    total[p] = 0, in_total[p] = 0;
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] = 0, in_sum[p][v] = 0;
  }
  for (int word = 0; word < WINDOW_WORDS; word++) {
    uint4 weight[TILE_VECTORS];
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) weight[v] = LOAD_4(uint, weights, word * TABLE_C + filter0 + 4 * v);
#pragma unroll
    for (int p = 0; p < TILE_PIXELS; p++) {
      // A pixel beyond the last one repeats it; its results go nowhere.
      const int at = min(pixel0 + p, end_pixel - 1) * WINDOW_WORDS + word;
      const uint4 low = LOAD_4(uint, planes, 8 * at), high = LOAD_4(uint, planes, 8 * at + 4);
      total[p] += weighted_ones(low, high, (uint4)(~0u)).x;
#pragma unroll
      for (int v = 0; v < TILE_VECTORS; v++) sum[p][v] += weighted_ones(low, high, weight[v]);
      if (INPUT_ADD != 0) {
        const uint window = TAPS % 32 == 0 || word < WINDOW_WORDS - 1 ? ~0u : (1u << (TAPS % 32)) - 1;
        const uint mask = PADDED ? planes[8 * end_pixel * WINDOW_WORDS + at] : window;
        in_total[p] += (int)popcount(mask);
#pragma unroll
        for (int v = 0; v < TILE_VECTORS; v++) in_sum[p][v] += as_int4(popcount(weight[v] & mask));
      }
    }
  }

  uint packed[TILE_PIXELS];
#pragma unroll
  for (int p = 0; p < TILE_PIXELS; p++) {
#ifdef THRESHOLD
    packed[p] = 0;
#else
    float4 results[TILE_VECTORS];
#endif
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) {
      const int4 acc = INPUT_MUL * (2 * sum[p][v] - total[p]) + INPUT_ADD * (2 * in_sum[p][v] - in_total[p]);
#ifdef THRESHOLD
      const int4 reached = acc >= LOAD_4(int, table, filter0 + 4 * v);  // -1 where true
      packed[p] |= ((reached.x & 1u) | (reached.y & 2u) | (reached.z & 4u) | (reached.w & 8u)) << (4 * v);
#else
      results[v] = convert_float4(acc);
#endif
    }
#ifndef THRESHOLD
    packed[p] = pixel0 + p < end_pixel ? finish_tile(results, pixel0 + p, filter0 SINK_ARGS) : 0;
#endif
  }
  STORE_TILES(TILE_PIXELS, pixel0, filter0, packed)
}
