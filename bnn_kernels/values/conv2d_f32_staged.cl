// @kernel   conv2d_f32_staged   float convolution; a group stages chunks of K in local memory while its lanes run their chains
// @math     sum over taps and input channels of x * w: one chain of fma in (kh, kw, cin) order from 0
// @args     int first_pixel, int end_pixel, void* input, float* weights, SINK
// @weights  [KERNEL_H*KERNEL_W*IN_C][4 * ceil(OUT_C / 4)] float, filters from OUT_C on are 0
// @geometry global = (GROUP_SIZE * ceil(pixels / TILE_PIXELS) * ceil(channels / TILE_FILTERS)), local = (GROUP_SIZE)
// @channels TILE_FILTERS
// @tune     TILE_PIXELS {1,4,8,16,32,64} = 4   output pixels per group
// @tune     TILE_FILTERS {8,16,32} = 8   output channels per group
// @tune     LANE_FILTERS {1,4} = 1   neighbouring channels per lane
// @tune     CHUNK {32,64,128,256} = 128   elements of K staged at a time
// @tune     AHEAD {1,2,4} = 1   chunks of weights that are on their way
// @tune     FUSED {1,0} = 1   0: multiply-adds of any rounding, a tolerance instead of the CPU's bits
// @tune     GROUP_SIZE {64,128,256} = 128
// @requires GROUPS == 1; TILE_FILTERS >= min(32, OUT_C) where HAS_BITS; no padding; the window is one run of the map: 1x1, or rows as wide as the map without dilation;
//           8 * CHUNK * (TILE_PIXELS + TILE_FILTERS) + 4 * TILE_PIXELS * TILE_FILTERS bytes of local memory
// @ref      CONV2D of float values   @source own
//
// A sum in the CPU's order is a chain of K dependent multiply-adds, and few pixels make few chains. conv2d_f32 waits
// for memory between the links; here all lanes of a group, also those without a chain, load chunk i + 1 into registers
// before the chains run over chunk i, so memory is waited for once per chunk, after the chains. Two buffers need one
// barrier per chunk. Where a chunk's chains take less time than a load of weights, AHEAD chunks of those are on their
// way.
#define TILE_CHANNELS TILE_FILTERS
#include "common/sink.clh"
#include "common/channels.clh"
#include "common/window.clh"

#define WINDOW (KERNEL_H * KERNEL_W * IN_C)
#define CHUNKS ((WINDOW + CHUNK - 1) / CHUNK)
#define FILTER_QUADS ((OUT_C + 3) / 4)

// A chunk as float4: inputs [TILE_PIXELS][CHUNK / 4], weights [CHUNK][TILE_FILTERS / 4]. Lane i of a group moves quads
// i, i + GROUP_SIZE, ... and holds the results i, i + GROUP_SIZE, ... of [TILE_PIXELS][FILTER_LANES], LANE_FILTERS sums
// each. Four share what a lane reads of the map, and one read of weights.
#define RUN_QUADS (CHUNK / 4)
#define INPUT_QUADS (TILE_PIXELS * RUN_QUADS)
#define WEIGHT_QUADS (CHUNK * TILE_VECTORS)
#define FILTER_LANES (TILE_FILTERS / LANE_FILTERS)
#define RESULTS (TILE_PIXELS * FILTER_LANES)
#define LANE_SHARE(count) (((count) + GROUP_SIZE - 1) / GROUP_SIZE)
#define LANE_HOLDS(i, count) ((count) % GROUP_SIZE == 0 || (i) < (count))
#define RESULT_PIXEL(r) QUOTIENT(lane + (r) * GROUP_SIZE, FILTER_LANES)
// Of a tile that overhangs. Where weights are not ahead, the test takes longer than what it saves.
#define HAS_PIXEL(pixel) (AHEAD == 1 || (pixel) < pixels)
#if LANE_FILTERS == 4
typedef float4 Sums;
#else
typedef float Sums;
#endif

// Element k of the chunk: a component of the inputs and row k of the weights.
#define ADD_ELEMENT(k, component)                                                                             \
  _Pragma("unroll") for (int r = 0; r < LANE_SHARE(RESULTS); r++) {                                           \
    sum[r] = MULTIPLY_ADD((Sums)(x[r] component), weights[(k) * FILTER_LANES + REMAINDER(lane, FILTER_LANES)], sum[r]); \
  }

// Links 0 to count - 1 of a chunk for all sums of a lane.
void run_chains(Sums* sum, __local const float4* inputs, __local const Sums* weights, int lane, int count) {
#pragma unroll 16
  for (int quad = 0; quad < count / 4; quad++) {
    float4 x[LANE_SHARE(RESULTS)];
#pragma unroll
    for (int r = 0; r < LANE_SHARE(RESULTS); r++) x[r] = inputs[RESULT_PIXEL(r) * RUN_QUADS + quad];
    ADD_ELEMENT(4 * quad, .x)
    ADD_ELEMENT(4 * quad + 1, .y)
    ADD_ELEMENT(4 * quad + 2, .z)
    ADD_ELEMENT(4 * quad + 3, .w)
  }
  // Not four with zeros after the window: adding 0 would make +0 of a sum of -0.
  for (int k = count / 4 * 4; k < count; k++) {
    float x[LANE_SHARE(RESULTS)];
#pragma unroll
    for (int r = 0; r < LANE_SHARE(RESULTS); r++) x[r] = LOCAL_AS(float, inputs)[RESULT_PIXEL(r) * CHUNK + k];
    ADD_ELEMENT(k, )
  }
}

// The lane's share of a chunk's weights, if there is such a chunk.
#define FETCH_WEIGHTS(quads, chunk)                                                                                      \
  if ((chunk) < CHUNKS) {                                                                                                \
    _Pragma("unroll") for (int j = 0; j < LANE_SHARE(WEIGHT_QUADS); j++) {                                               \
      const int i = lane + j * GROUP_SIZE, k = (chunk) * CHUNK + i / TILE_VECTORS;                                       \
      const int is_read = LANE_HOLDS(i, WEIGHT_QUADS) && (WINDOW % CHUNK == 0 || k < WINDOW);                            \
      quads[j] = is_read ? weights[k * FILTER_QUADS + filter_at[j]] : (float4)(0.0f);          \
    }                                                                                                                    \
  }

// Steps, values and sign bits of a lane's sums of one pixel.
uint finish_sums(Sums sums, int pixel, int channel SINK_PARAMS) {
#if LANE_FILTERS == 1
  return sink1(sums, pixel, channel SINK_ARGS);
#else
  if (OUT_C % 4 == 0)
    return !TILES_OVERHANG(TILE_FILTERS) || channel < END_CHANNEL ? sink4(sums, pixel, channel SINK_ARGS) : 0;
  return sink1(sums.x, pixel, channel SINK_ARGS) | sink1(sums.y, pixel, channel + 1 SINK_ARGS) << 1 |
         sink1(sums.z, pixel, channel + 2 SINK_ARGS) << 2 | sink1(sums.w, pixel, channel + 3 SINK_ARGS) << 3;
#endif
}

__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void conv2d_f32_staged(
    int first_pixel, int end_pixel, __global const void* restrict input,
    __global const float4* restrict weights SINK_PARAMS) {
  __local float4 inputs[2][INPUT_QUADS], filters[2][WEIGHT_QUADS];
  const int lane = get_local_id(0);
  const int pixel0 = first_pixel + QUOTIENT(get_group_id(0), CHANNEL_TILES) * TILE_PIXELS;
  const int pixels = min(TILE_PIXELS, end_pixel - pixel0);
  const int filter0 = FIRST_CHANNEL + REMAINDER(get_group_id(0), CHANNEL_TILES) * TILE_FILTERS;

  // Filters and pixels beyond the last one repeat it; their results go nowhere.
  int input_at[LANE_SHARE(INPUT_QUADS)], filter_at[LANE_SHARE(WEIGHT_QUADS)];
#pragma unroll
  for (int j = 0; j < LANE_SHARE(INPUT_QUADS); j++) {
    const int pixel = min(pixel0 + QUOTIENT(lane + j * GROUP_SIZE, RUN_QUADS), end_pixel - 1);
    const int row = PIXEL_IMAGE(pixel) * IN_H + PIXEL_Y(pixel) * STRIDE_H;
    input_at[j] = (row * IN_W + PIXEL_X(pixel) * STRIDE_W) * IN_C;
  }
#pragma unroll
  for (int j = 0; j < LANE_SHARE(WEIGHT_QUADS); j++) {
    filter_at[j] = min(QUOTIENT(filter0, 4) + REMAINDER(lane + j * GROUP_SIZE, TILE_VECTORS), FILTER_QUADS - 1);
  }
  Sums sum[LANE_SHARE(RESULTS)];
#pragma unroll
  for (int r = 0; r < LANE_SHARE(RESULTS); r++) sum[r] = (Sums)(0.0f);

  // Step i fetches inputs of chunk i and weights of chunk i + AHEAD - 1, and runs over chunk i - 1.
  float4 coming[AHEAD][LANE_SHARE(WEIGHT_QUADS)];  // chunk i in row i % AHEAD
#pragma unroll
  for (int chunk = 0; chunk < AHEAD - 1; chunk++) {
    FETCH_WEIGHTS(coming[chunk], chunk)
  }
  for (int first = 0; first <= CHUNKS; first += AHEAD) {
#pragma unroll
    for (int turn = 0; turn < AHEAD; turn++) {
      const int step = first + turn;
      FETCH_WEIGHTS(coming[(turn + AHEAD - 1) % AHEAD], step + AHEAD - 1)
      float4 next_inputs[LANE_SHARE(INPUT_QUADS)];
      if (step < CHUNKS) {
#pragma unroll
        for (int j = 0; j < LANE_SHARE(INPUT_QUADS); j++) {
          const int i = lane + j * GROUP_SIZE, k = step * CHUNK + i % RUN_QUADS * 4;
          const int is_read = LANE_HOLDS(i, INPUT_QUADS) && HAS_PIXEL(i / RUN_QUADS) && (WINDOW % CHUNK == 0 || k < WINDOW);
          next_inputs[j] = is_read ? load_four(INPUT_HALF, input, input_at[j] + k, WINDOW - k, IN_C) : (float4)(0.0f);
        }
      }
      if (step > 0 && step <= CHUNKS && LANE_HOLDS(lane, RESULTS) && HAS_PIXEL(RESULT_PIXEL(0))) {
        const int count = WINDOW % CHUNK == 0 ? CHUNK : min(WINDOW - (step - 1) * CHUNK, CHUNK);
        run_chains(sum, inputs[(step - 1) % 2], LOCAL_AS(Sums, filters[(step - 1) % 2]), lane, count);
      }
      if (step < CHUNKS) {
#pragma unroll
        for (int j = 0; j < LANE_SHARE(INPUT_QUADS); j++) {
          const int i = lane + j * GROUP_SIZE;
          if (LANE_HOLDS(i, INPUT_QUADS)) inputs[step % 2][i] = next_inputs[j];
        }
#pragma unroll
        for (int j = 0; j < LANE_SHARE(WEIGHT_QUADS); j++) {
          const int i = lane + j * GROUP_SIZE;
          if (LANE_HOLDS(i, WEIGHT_QUADS)) filters[step % 2][i] = coming[turn][j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
      }
    }
  }

#ifdef HAS_BITS
  __local uint bit[RESULTS];
#endif
#pragma unroll
  for (int r = 0; r < LANE_SHARE(RESULTS); r++) {
    const int i = lane + r * GROUP_SIZE, pixel = pixel0 + QUOTIENT(i, FILTER_LANES);
    const int place = REMAINDER(i, FILTER_LANES) * LANE_FILTERS;
    if (!LANE_HOLDS(i, RESULTS) || pixel >= end_pixel) continue;
    const uint reached = finish_sums(sum[r], pixel, filter0 + place SINK_ARGS);
#ifdef HAS_BITS
    bit[i] = reached << place;
#endif
  }
#ifdef HAS_BITS
  barrier(CLK_LOCAL_MEM_FENCE);
  // A lane packs the bits of a pixel.
  for (int p = lane; p < pixels; p += GROUP_SIZE) {
    uint packed = 0;
    for (int f = 0; f < FILTER_LANES; f++) packed |= bit[p * FILTER_LANES + f];
    store_word(pixel0 + p, QUOTIENT(filter0, 32), packed SINK_ARGS);
  }
#endif
}
