// @kernel   pool   maximum or average over the taps of a window that lie inside the map
// @math     POOL_MAX: most = x > most ? x : most from -inf on; else: (sum of blocks) / taps, one division
//           (docs/format.md, "Averages")
// @args     int first_pixel, int end_pixel, void* input, SINK
// @geometry global = (roundup(pixels * ceil(roundup(channels, CHANNEL_UNIT) / TILE_CHANNELS), GROUP_SIZE)), local = (GROUP_SIZE)
// @channels TILE_CHANNELS
// @tune     TILE_CHANNELS {4,8,16} = 8   channels per work-item
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires IN_C == OUT_C; TILE_CHANNELS >= 8 where HAS_BITS; every window has a tap inside the map
// @ref      MAX_POOL2D, AVERAGE_POOL2D of float values   @source own
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

// Taps are reduced in blocks of whole rows or of a run of one row; a maximum and a small window are one block.
#define BLOCK_TAPS 14
#define ADDS_BLOCKS (!POOL_MAX && KERNEL_H * KERNEL_W > BLOCK_TAPS)
#define BLOCK_ROWS (!ADDS_BLOCKS ? KERNEL_H : KERNEL_W < BLOCK_TAPS ? BLOCK_TAPS / KERNEL_W : 1)
#define BLOCK_COLUMNS (!ADDS_BLOCKS || KERNEL_W < BLOCK_TAPS ? KERNEL_W : BLOCK_TAPS)

__kernel void pool(int first_pixel, int end_pixel, __global const void* restrict input SINK_PARAMS) {
  SHARED_TILES(1)
  const int id = first_pixel * CHANNEL_TILES + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, CHANNEL_TILES), channel = FIRST_CHANNEL + REMAINDER(id, CHANNEL_TILES) * TILE_CHANNELS;
  uint packed[1];
  packed[0] = 0;
  if (pixel < end_pixel) {
    const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel), image = PIXEL_IMAGE(pixel) * (IN_H * IN_W);

    float4 results[TILE_VECTORS];
    float4 rests[TILE_VECTORS];  // what rounding took from the sums
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) results[v] = rests[v] = (float4)(0.0f);
    int taps = 0;
    for (int top = 0; top < KERNEL_H; top += BLOCK_ROWS) {
      for (int left = 0; left < KERNEL_W; left += BLOCK_COLUMNS) {
        float4 block[TILE_VECTORS];
#pragma unroll
        for (int v = 0; v < TILE_VECTORS; v++) block[v] = (float4)(POOL_MAX ? -INFINITY : 0.0f);
        for (int ky = top; ky < min(top + BLOCK_ROWS, KERNEL_H); ky++) {
          for (int kx = left; kx < min(left + BLOCK_COLUMNS, KERNEL_W); kx++) {
            const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
            if (!INSIDE(in_y, in_x)) continue;
            taps++;
            const int from = (image + in_y * IN_W + in_x) * OUT_C;
#pragma unroll
            for (int v = 0; v < TILE_VECTORS; v++) {
              const int c = channel + 4 * v;
              if (HAS_OVERHANG && c >= END_CHANNEL) continue;
              const float4 tap = load_four(INPUT_HALF, input, from + c, OUT_C - c, OUT_C);
              // Not fmax: a NaN is passed over, as on the CPU.
              block[v] = POOL_MAX ? select(block[v], tap, tap > block[v]) : block[v] + tap;
            }
          }
        }
#pragma unroll
        for (int v = 0; v < TILE_VECTORS; v++) {
          if (ADDS_BLOCKS) {
            const float4 before = results[v], added = block[v] + rests[v];
            results[v] = before + added;
            const float4 of_added = results[v] - before;
            const float4 lost = (before - (results[v] - of_added)) + (added - of_added);  // Knuth's two-sum: exact
            rests[v] = select((float4)(0.0f), lost, lost == lost);                        // an infinite sum stays one
          } else {
            results[v] = block[v];
          }
        }
      }
    }
#pragma unroll
    for (int v = 0; v < TILE_VECTORS; v++) results[v] = POOL_MAX ? results[v] : results[v] / (float4)((float)taps);
    packed[0] = finish_tile(results, pixel, channel SINK_ARGS);
  }
  STORE_TILES(1, pixel, channel, packed)
}
