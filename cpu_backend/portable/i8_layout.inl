// How 8-bit convolutions are stored: see i8_conv.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after i8_products.inl or i8_dots.inl.
#pragma once

#include "f32_tile.inl"

static inline RunGeometry byte_runs(const ConvShape& s) {
  const size_t channels = s.in_c;
  return run_geometry(s, {nullptr, map_columns(s) * channels, channels});
}

/// Groups of taps in a window, each run's last one filled up.
static inline size_t window_groups(const ConvShape& s, int group_taps = kGroupTaps) {
  const RunGeometry runs = byte_runs(s);
  return (size_t)s.kernel_h * runs.runs_per_row * ((runs.run_length + group_taps - 1) / group_taps);
}

static inline size_t whole_vectors(const ConvShape& s) { return (s.out_c + kLanes - 1) / kLanes * kLanes; }

/// Bytes of one number per channel, up to where the next array begins.
static inline size_t channel_array_bytes(const ConvShape& s) {
  return (whole_vectors(s) * sizeof(float) + 63) / 64 * 64;
}

/// Packed: what the sums begin with, and the scale, of each channel; then the weights.
struct ByteConstants {
  const int32_t* starts;
  const float* scales;
  const int8_t* weights;

  ByteConstants(const ConvShape& s, const void* packed) {
    const size_t bytes = channel_array_bytes(s);
    starts = (const int32_t*)packed;
    scales = (const float*)((const char*)packed + bytes);
    weights = (const int8_t*)packed + 2 * bytes;
  }
};

PHONEBIT_RARE static size_t i8_packed_bytes(const ConvShape& s) {
  return 2 * channel_array_bytes(s) + window_groups(s) * whole_vectors(s) * kGroupTaps;
}

static inline int byte_slice_vectors(const ConvShape& s, int channel, int max_vectors = kByteVectors) {
  const int left = (s.out_c - channel + kLanes - 1) / kLanes;
  return left < max_vectors ? left : max_vectors;
}

/// What the last group may read after the map.
constexpr int kMapSlack = 7;
static_assert(kGroupTaps <= kMapSlack + 1);
