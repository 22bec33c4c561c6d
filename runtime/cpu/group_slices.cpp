#include "cpu/group_slices.h"

#include <cstring>

#include "cpu/bit_copy.h"

namespace phonebit::engine::cpu {
namespace {

template <class Value>
void copy_channels(PixelRow<const Value> from, PixelRow<Value> to, int count, int pixels) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(Value);
  for (int pixel = 0; pixel < pixels; ++pixel, from.first += from.stride, to.first += to.stride)
    std::memcpy(to.first, from.first, bytes);
}

}  // namespace

void cut_slice(PixelRow<const uint32_t> from, int begin, int count, int pixels, PixelRow<uint32_t> to) {
  for (int pixel = 0; pixel < pixels; ++pixel, from.first += from.stride, to.first += to.stride)
    extract_bits(from.first, begin, count, to.first);
}

void cut_slice(PixelRow<const uint8_t> from, int begin, int count, int pixels, PixelRow<uint8_t> to) {
  copy_channels({from.first + begin, from.stride}, to, count, pixels);
}

void cut_slice(PixelRow<const float> from, int begin, int count, int pixels, PixelRow<float> to) {
  copy_channels({from.first + begin, from.stride}, to, count, pixels);
}

void join_slices(PixelRow<const uint32_t> from, size_t group_stride, int groups, int count, int pixels,
                 PixelRow<uint32_t> to) {
  for (int pixel = 0; pixel < pixels; ++pixel, from.first += from.stride, to.first += to.stride) {
    for (int group = 0; group < groups; ++group)
      append_bits(to.first, group * count, from.first + static_cast<size_t>(group) * group_stride, count);
  }
}

void join_slice(PixelRow<const float> from, int begin, int count, int pixels, PixelRow<float> to) {
  copy_channels(from, {to.first + begin, to.stride}, count, pixels);
}

}  // namespace phonebit::engine::cpu
