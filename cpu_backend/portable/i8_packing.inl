// What 8-bit convolutions do once per layer, and with their inputs.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after i8_products.inl.
#pragma once

#include "i8_layout.inl"

/// i8_pack_weights for groups of so many taps and slices of so many vectors.
PHONEBIT_RARE static inline void pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales,
                                            void* packed, int group_taps, int max_vectors) {
  const ByteConstants at(s, packed);
  const RunGeometry runs = byte_runs(s);
  const int run_count = s.kernel_h * runs.runs_per_row;
  const size_t taps = window_taps(s), groups = window_groups(s, group_taps);
  __builtin_memset(packed, 0, 2 * channel_array_bytes(s) + groups * whole_vectors(s) * group_taps);
  for (int channel = 0, lanes; channel < s.out_c; channel += lanes) {
    lanes = byte_slice_vectors(s, channel, max_vectors) * kLanes;
    int8_t* slice = (int8_t*)at.weights + channel * groups * group_taps;
    for (int lane = 0; lane < lanes && channel + lane < s.out_c; lane++) {
      const int8_t* from = weights + (channel + lane) * taps;
      int8_t* to = slice + lane * group_taps;
      int32_t sum = 0;
      for (int run = 0; run < run_count; run++) {
        for (int tap = 0; tap < runs.run_length; tap++, from++) {
          to[tap / group_taps * lanes * group_taps + tap % group_taps] = *from;
          sum += *from;
        }
        to += (runs.run_length + group_taps - 1) / group_taps * lanes * group_taps;
      }
      ((int32_t*)at.starts)[channel + lane] = -kByteOffset * sum;
      ((float*)at.scales)[channel + lane] = scales ? scales[channel + lane] : 1.0f;
    }
  }
}

static float i8_largest(const float* values, size_t count) {
  FloatVector largest = {};
  size_t i = 0;
  const auto add = [&](FloatVector v) PHONEBIT_LAMBDA_INLINE {
    largest = maximum(maximum(v, broadcast(0.0f) - v), largest);
  };
  for (; i + kLanes <= count; i += kLanes) add(load(values + i));
  if (i < count) add(load_partial(values + i, (int)(count - i)));
  float lanes[kLanes], result = 0.0f;
  store(lanes, largest);
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;
}

/// kLanes values of the map; NaN becomes -127.
typedef MapValue MapVector __attribute__((vector_size(kLanes * sizeof(MapValue))));
PHONEBIT_INLINE MapVector quantized_values(FloatVector x, FloatVector multiplier) {
  const FloatVector limited = minimum(maximum(x * multiplier, broadcast(-127.0f)), broadcast(127.0f));
  const IntVector whole = __builtin_convertvector(nearest_integer(limited), IntVector);
  return __builtin_convertvector(whole + kByteOffset, MapVector);
}

static inline void quantize_run(const float* from, size_t count, float multiplier, MapValue* to) {
  const FloatVector factor = broadcast(multiplier);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, quantized_values(load(from + i), factor));
  if (i == count) return;
  MapValue last[kLanes];
  store(last, quantized_values(load_partial(from + i, (int)(count - i)), factor));
  __builtin_memcpy(to + i, last, (count - i) * sizeof(MapValue));
}

/// What is 0 outside of the map.
static inline void fill_map(MapValue* to, size_t count) {
  __builtin_memset(to, kByteOffset, count * sizeof(MapValue));
}

static void i8_prepare_input(const ConvShape& s, const float* input, float multiplier, void* scratch,
                             int row_begin, int row_end) {
  const int width = map_columns(s);
  const int left = s.pad_left < width ? s.pad_left : width;
  const int inside = width - left < s.in_w ? width - left : s.in_w;
  const size_t channels = s.in_c;
  for (int y = row_begin; y < row_end; y++) {
    MapValue* row = (MapValue*)scratch + y * width * channels;
    const int in_y = y - s.pad_top;
    if (in_y < 0 || in_y >= s.in_h) {
      fill_map(row, width * channels);
      continue;
    }
    fill_map(row, left * channels);
    quantize_run(input + (size_t)in_y * s.in_w * channels, inside * channels, multiplier,
                 row + left * channels);
    fill_map(row + (left + inside) * channels, (width - left - inside) * channels);
  }
  if (row_end == map_rows(s)) fill_map((MapValue*)scratch + row_end * width * channels, kMapSlack);
}
