// Rows of images made longer or shorter, and rows added up by weights: what resizing consists of.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);  // rounds what is shifted

/// A level of each lane from pixels [column] of `count` rows.
template <int kVectors>
PHONEBIT_INLINE void levels_across(const uint8_t* const* rows, const int32_t* weights, int count,
                                   size_t column, uint8_t* out) {
  IntVector sums[kVectors];
  for (int v = 0; v < kVectors; v++) sums[v] = IntVector{} + kHalfWeight;
  for (int k = 0; k < count; k++) {
    for (int v = 0; v < kVectors; v++) sums[v] += load_levels(rows[k] + column + v * kLanes) * weights[k];
  }
  for (int v = 0; v < kVectors; v++) store_levels(out + column + v * kLanes, sums[v] >> kWeightBits);
}

void resample_across(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes,
                     uint8_t* out) {
  constexpr int kTogether = 4;
  size_t at = 0;
  for (; at + kTogether * kLanes <= bytes; at += kTogether * kLanes)
    levels_across<kTogether>(rows, weights, count, at, out);
  for (; at + kLanes <= bytes; at += kLanes) levels_across<1>(rows, weights, count, at, out);
  for (; at < bytes; at++) {
    int32_t sum = kHalfWeight;
    for (int k = 0; k < count; k++) sum += rows[k][at] * weights[k];
    sum >>= kWeightBits;
    out[at] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }
}

void resample_along(const SampleWindow* windows, size_t count, const int32_t* weights, size_t pitch,
                    const uint8_t* row, uint8_t* out) {
  for (size_t i = 0; i < count; i++, weights += pitch, out += kPixelLevels) {
    const uint8_t* pixels = row + (ptrdiff_t)windows[i].first * kPixelLevels;
    IntVector sums = {};
    // Samples after the window's last have a weight of 0.
    for (int k = 0; k < windows[i].count; k += kLanes / kPixelLevels)
      sums += load_levels(pixels + k * kPixelLevels) * spread_weights(weights + k);
    store_pixel(out, (sum_pixels(sums) + kHalfWeight) >> kWeightBits);
  }
}

constexpr ResamplingKernels kResampling = {resample_along, resample_across};
