#include "backend/input_values.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "threads/keep_minimum.h"
#include "types/fail.h"

namespace phonebit::engine {
namespace {

/// A float32 is NaN or infinite where its exponent is all ones: then one more carries into bit 31.
uint32_t with_exponent_raised(const float* value) {
  uint32_t bits;
  std::memcpy(&bits, value, sizeof bits);
  return (bits & 0x7fffffffu) + 0x00800000u;
}

}  // namespace

/// Blocks are tested without branches, which compilers turn into vector code.
size_t find_not_finite(const float* values, size_t begin, size_t end) {
  constexpr size_t kBlock = 1024;
  while (begin < end) {
    const size_t block_end = end - begin < kBlock ? end : begin + kBlock;
    uint32_t found = 0;
    for (size_t i = begin; i < block_end; ++i) found |= with_exponent_raised(values + i);
    if (found >> 31 == 0) {
      begin = block_end;
      continue;
    }
    while (with_exponent_raised(values + begin) >> 31 == 0) ++begin;
    return begin;
  }
  return end;
}

void fail_for_value(const loader::Tensor& tensor, const float* values, size_t at) {
  const auto channels = static_cast<size_t>(tensor.channels);
  const auto width = static_cast<size_t>(tensor.width);
  const auto height = static_cast<size_t>(tensor.height);
  const size_t pixel = at / channels;
  fail(ErrorCode::input,
       "input '%s': %s at image %zu, row %zu, column %zu, channel %zu; expected finite numbers",
       tensor.name.c_str(), std::isnan(values[at]) ? "NaN" : "infinity", pixel / width / height,
       pixel / width % height, pixel % width, at % channels);
}

void check_finite(const loader::Tensor& tensor, const InputBuffer& input, threads::ThreadPool& pool) {
  if (tensor.dtype != format::DataType::kF32 || input.is_levels) return;
  constexpr size_t kPart = size_t{1} << 15;  // about 2 us
  const auto* const values = static_cast<const float*>(input.data);
  const size_t count = input.bytes / sizeof(float), parts = (count + kPart - 1) / kPart;
  std::atomic<size_t> first{count};
  const auto search = [&](int part) {
    const size_t begin = static_cast<size_t>(part) * kPart;
    const size_t end = std::min(count, begin + kPart);
    const size_t found = find_not_finite(values, begin, end);
    if (found < end) threads::keep_minimum(first, found);
  };
  // More than 2^31 parts would be 2^46 floats.
  pool.parallel_for(static_cast<int>(parts), search);
  if (first.load() < count) fail_for_value(tensor, values, first.load());
}

}  // namespace phonebit::engine
