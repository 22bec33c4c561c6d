#include "coexec/region.h"

#include <cstring>

namespace phonebit::engine::coexec {

namespace {

size_t channel_bytes(const loader::Tensor& tensor, int channel) {
  const auto count = static_cast<size_t>(channel);
  switch (tensor.dtype) {
    case format::DataType::kBit:
      return channel == tensor.channels ? sizeof(uint32_t) * static_cast<size_t>(tensor.words()) : count / 8;
    case format::DataType::kU8:
      return count;
    default:
      return sizeof(float) * count;
  }
}

}  // namespace

gpu::Region region_of(const loader::Tensor& tensor, const OutputPart& part) {
  const size_t pixel = channel_bytes(tensor, tensor.channels);
  const size_t row = pixel * static_cast<size_t>(tensor.width);
  const size_t first_row = row * static_cast<size_t>(part.row_begin);
  const auto rows = static_cast<size_t>(part.row_end - part.row_begin);
  const size_t begin = channel_bytes(tensor, part.channel_begin),
               end = channel_bytes(tensor, part.channel_end);
  if (end - begin == pixel) return {first_row, rows * row, 1, rows * row};
  return {first_row + begin, end - begin, rows * static_cast<size_t>(tensor.width), pixel};
}

void copy_region(const gpu::Region& region, const std::byte* from, std::byte* to) {
  for (size_t run = 0; run < region.runs; ++run) {
    const size_t at = region.offset + run * region.pitch;
    std::memcpy(to + at, from + at, region.run_bytes);
  }
}

}  // namespace phonebit::engine::coexec
