// @kernel   conv2d_u8_mma   u8 pixels times weights of +1/-1 on tensor cores; a warp holds TILE_PIXELS x TILE_FILTERS sums
// @math     acc = INPUT_MUL (sum of w x) + INPUT_ADD (sum of w) over taps inside the map;
//     THRESHOLD: bit = acc >= table[c]
// @args     int first_pixel, int end_pixel, uchar* input, uint* weights, int* table, SINK
// @weights  mma of bytes
// @geometry global = (32 * roundup(ceil(pixels / TILE_PIXELS), WARPS), ceil(channels / TILE_FILTERS)), local = (32 * WARPS, 1)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {16,32,64} = 32   output pixels per warp
// @tune     TILE_FILTERS {16,32,64} = 32   filters per warp
// @tune     WARPS {1,2,4} = 2   warps per group
// @requires nvidia, compute capability 8.0; GROUPS == 1; DILATION_W == 1; KERNEL_W * IN_C >= 8;
//     TILE_PIXELS * TILE_FILTERS <= 2048; TILE_FILTERS >= 32 where HAS_BITS or THRESHOLD
// @ref      CONV2D of u8   @source own
#define TILE_CHANNELS (TILE_FILTERS / 4)
#define SPLIT 1
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"
#include "common/mma.clh"

// Rows are output pixels, columns filters, as in bconv2d_mma.cl: a lane has the sums of TILE_CHANNELS neighbouring
// channels of ROWS pixels that lie eight apart. It reads eight neighbouring bytes of each chunk of 32.
#define ROWS (TILE_PIXELS / 8)
#define BLOCKS (TILE_FILTERS / 8)

// A row of the window is one run of bytes, in octets. The last octet ends with the run: what the octet before it has as
// well, has weights of 0, and nothing outside of the row is read.
#define RUN (KERNEL_W * IN_C)
#define RUN_OCTETS ((RUN + 7) / 8)
#define OCTETS (KERNEL_H * RUN_OCTETS)
#define CHUNKS ((OCTETS + 3) / 4)

// The sum of w is a product, too: with 1 for every byte inside the map. Without padding it is the same for all pixels.
#if INPUT_ADD == 0
#define COUNTED 0
#elif PADDED
#define COUNTED (ROWS / 2)
#else
#define COUNTED 1
#endif
#define ALL_INSIDE ((uint2)(0x01010101u))
#define EIGHT_BYTES(from) ((uint2)(as_uint(vload4(0, from)), as_uint(vload4(1, from))))

// `at` is the octet's place in its row of the map, counted in bytes; `inside` gets 1 for each byte of it in the map.
uint2 load_octet(__global const uchar* restrict row, int is_row_inside, int at, uint2* inside) {
#if PADDED
  uchar bytes[8], is_inside[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    is_inside[i] = is_row_inside && (uint)(at + i) < (uint)(IN_W * IN_C);
    bytes[i] = is_inside[i] ? row[at + i] : (uchar)0;
  }
  *inside = EIGHT_BYTES(is_inside);
  return EIGHT_BYTES(bytes);
#else
  return EIGHT_BYTES(row + at);
#endif
}

__kernel __attribute__((reqd_work_group_size(32 * WARPS, 1, 1))) void conv2d_u8_mma(
    int first_pixel, int end_pixel, __global const uchar* restrict input, __global const uint2* restrict weights,
    __global const int* restrict table SINK_PARAMS) {
  MMA_MEMORY
  const int lane = (int)get_local_id(0) % 32, row = lane / 4, part = lane % 4;
  const int warp_pixel = first_pixel + ((int)get_group_id(0) * WARPS + (int)get_local_id(0) / 32) * TILE_PIXELS;
  const int tile = FIRST_CHANNEL / TILE_FILTERS + (int)get_group_id(1);
  const int channel = tile * TILE_FILTERS + part * TILE_CHANNELS;

  // Pixels beyond the last one repeat it; their results go nowhere.
  int in_y[ROWS], begin[ROWS], image_row[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = min(warp_pixel + 8 * i + row, end_pixel - 1);
    in_y[i] = TAP_Y(PIXEL_Y(pixel), 0);
    begin[i] = TAP_X(PIXEL_X(pixel), 0) * IN_C;
    image_row[i] = PIXEL_IMAGE(pixel) * IN_H;
  }
  int sums[ROWS / 2][BLOCKS][4] = {{{0}}};
#if COUNTED
  int counts[COUNTED][BLOCKS][4] = {{{0}}};
#endif
  __global const uint2* filters = weights + tile * (CHUNKS * BLOCKS * 32) + lane;
#pragma unroll 2
  for (int chunk = 0; chunk < CHUNKS; ++chunk) {
    const int octet = min(chunk * 4 + part, OCTETS - 1);  // beyond the last one weights are 0
    const int ky = octet / RUN_OCTETS, offset = min(octet % RUN_OCTETS * 8, RUN - 8);
    uint2 a[ROWS], inside[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const int y = in_y[i] + ky * DILATION_H;
      const int is_row_inside = !PADDED || (uint)y < (uint)IN_H;
      inside[i] = ALL_INSIDE;
      a[i] = load_octet(input + (image_row[i] + (is_row_inside ? y : 0)) * (IN_W * IN_C), is_row_inside, begin[i] + offset,
                        &inside[i]);
    }
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      const uint2 b = filters[(chunk * BLOCKS + j) * 32];
#pragma unroll
      for (int i = 0; i < ROWS / 2; ++i) {
        multiply_bytes(sums[i][j], (uint4)(a[2 * i].x, a[2 * i + 1].x, a[2 * i].y, a[2 * i + 1].y), b MMA_ARGS);
      }
#pragma unroll
      for (int i = 0; i < COUNTED; ++i) {
#if COUNTED
        multiply_bytes(counts[i][j], (uint4)(inside[2 * i].x, inside[2 * i + 1].x, inside[2 * i].y, inside[2 * i + 1].y),
                       b MMA_ARGS);
#endif
      }
    }
  }

// Four of a lane's results for pixel i: quad k of its channels.
#define QUAD_OF(from, i, k)                                                                       \
  (int4)(from[2 * (k)][(i) % 2 * 2], from[2 * (k)][(i) % 2 * 2 + 1], from[2 * (k) + 1][(i) % 2 * 2], \
         from[2 * (k) + 1][(i) % 2 * 2 + 1])
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int pixel = warp_pixel + 8 * i + row;
    if (pixel >= end_pixel || channel >= END_CHANNEL) continue;
#ifdef THRESHOLD
    uint packed = 0;
#else
    float4 results[TILE_VECTORS];
#endif
#pragma unroll
    for (int k = 0; k < TILE_VECTORS; ++k) {
      int4 acc = INPUT_MUL * QUAD_OF(sums[i / 2], i, k);
#if COUNTED
      acc += INPUT_ADD * QUAD_OF(counts[COUNTED == 1 ? 0 : i / 2], i, k);
#endif
#ifdef THRESHOLD
      const int4 reached = acc >= *(__global const int4*)(table + channel + 4 * k);  // -1 where true
      packed |= ((reached.x & 1u) | (reached.y & 2u) | (reached.z & 4u) | (reached.w & 8u)) << (4 * k);
#else
      results[k] = convert_float4(acc);
#endif
    }
#ifndef THRESHOLD
    const uint packed = finish_tile(results, pixel, channel SINK_ARGS);
#endif
    store_lane_bits(TILE_CHANNELS, pixel, channel, packed SINK_ARGS);
  }
}
