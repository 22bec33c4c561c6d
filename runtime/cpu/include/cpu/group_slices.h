// Pixels of a grouped layer, cut into the groups' slices of channels and joined again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::cpu {

/// Consecutive pixels: the first one's elements, and elements from one to the next.
template <class Element>
struct PixelRow {
  Element* first;
  size_t stride;
};

/// Copies `count` channels from channel `begin` on of each pixel: packed bits, bytes, floats.
void cut_slice(PixelRow<const uint32_t> from, int begin, int count, int pixels, PixelRow<uint32_t> to);
void cut_slice(PixelRow<const uint8_t> from, int begin, int count, int pixels, PixelRow<uint8_t> to);
void cut_slice(PixelRow<const float> from, int begin, int count, int pixels, PixelRow<float> to);

/// Writes the packed bits of all groups, `count` channels each, one after the other into each pixel. Groups
/// lie `group_stride` words apart.
void join_slices(PixelRow<const uint32_t> from, size_t group_stride, int groups, int count, int pixels,
                 PixelRow<uint32_t> to);
/// Copies one group's floats into the pixels of all groups, from channel `begin` on.
void join_slice(PixelRow<const float> from, int begin, int count, int pixels, PixelRow<float> to);

}  // namespace phonebit::engine::cpu
