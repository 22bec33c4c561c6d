#include "engine/buffer_checks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "types/fail.h"

namespace phonebit::engine {
namespace {

/// A float32 is NaN when its exponent is all ones and its mantissa is not zero: as an integer without the
/// sign bit, above infinity.
bool is_nan_pattern(const float* value) {
  uint32_t bits;
  std::memcpy(&bits, value, sizeof bits);
  return (bits & 0x7fffffffu) > 0x7f800000u;
}

/// Index of the first NaN in [begin, end), or `end`. Blocks are tested without branches, which compilers turn
/// into vector code.
size_t find_nan(const float* values, size_t begin, size_t end) {
  constexpr size_t kBlock = 1024;
  while (begin < end) {
    const size_t block_end = end - begin < kBlock ? end : begin + kBlock;
    uint32_t found = 0;
    for (size_t i = begin; i < block_end; ++i) found |= is_nan_pattern(values + i) ? 1u : 0u;
    while (found != 0 && !is_nan_pattern(values + begin)) ++begin;
    if (found != 0) return begin;
    begin = block_end;
  }
  return end;
}

void check_buffer(const char* role, const TensorInfo& tensor, const void* data, size_t bytes, int batch) {
  const auto images = static_cast<size_t>(batch);
  const bool is_countable = images <= std::numeric_limits<size_t>::max() / tensor.bytes();
  if (!is_countable || bytes != images * tensor.bytes())
    fail(ErrorCode::input, "%s '%s': got a buffer of %zu bytes, expected %zu for each of %d images", role,
         tensor.name.c_str(), bytes, tensor.bytes(), batch);
  if (data == nullptr) fail(ErrorCode::input, "%s '%s': the buffer is null", role, tensor.name.c_str());
  if (tensor.dtype != ElementType::u8 && reinterpret_cast<uintptr_t>(data) % sizeof(float) != 0)
    fail(ErrorCode::input, "%s '%s': the buffer is not 4-byte aligned; copy it first", role,
         tensor.name.c_str());
}

template <class Buffer>
bool is_overlapping(const OutputBuffer& output, const Buffer& other) {
  const auto begin = reinterpret_cast<uintptr_t>(output.data),
             other_begin = reinterpret_cast<uintptr_t>(other.data);
  return begin < other_begin ? other_begin - begin < output.bytes : begin - other_begin < other.bytes;
}

}  // namespace

template <class Buffer>
void check_buffers(const char* role, const std::vector<Buffer>& buffers,
                   const std::vector<TensorInfo>& tensors, const std::vector<int>& which, int batch) {
  if (batch < 1) fail(ErrorCode::input, "batch: got %d, expected at least 1", batch);
  if (buffers.size() != which.size())
    fail(ErrorCode::input, "%ss: got %zu buffers, expected %zu", role, buffers.size(), which.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    check_buffer(role, tensors[static_cast<size_t>(which[i])], buffers[i].data, buffers[i].bytes, batch);
}

template void check_buffers(const char*, const std::vector<InputBuffer>&, const std::vector<TensorInfo>&,
                            const std::vector<int>&, int);
template void check_buffers(const char*, const std::vector<OutputBuffer>&, const std::vector<TensorInfo>&,
                            const std::vector<int>&, int);

void check_disjoint(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (is_overlapping(outputs[i], inputs[j]))
        fail(ErrorCode::input, "output %zu overlaps input %zu in memory; give it a buffer of its own", i, j);
    }
    for (size_t j = 0; j < i; ++j) {
      if (is_overlapping(outputs[i], outputs[j]))
        fail(ErrorCode::input, "output %zu overlaps output %zu in memory; give it a buffer of its own", i, j);
    }
  }
}

void check_no_nan(const TensorInfo& tensor, const float* values, size_t count, threads::ThreadPool& pool) {
  constexpr size_t kPart = size_t{1} << 15;  // about 4 us
  const size_t parts = (count + kPart - 1) / kPart;
  std::atomic<size_t> first{count};
  const auto search = [&](int part) {
    const size_t begin = static_cast<size_t>(part) * kPart;
    const size_t end = std::min(count, begin + kPart);
    const size_t found = find_nan(values, begin, end);
    size_t seen = first.load(std::memory_order_relaxed);
    while (found < end && found < seen && !first.compare_exchange_weak(seen, found)) {
    }
  };
  // More than 2^31 parts would be 2^46 floats.
  pool.parallel_for(static_cast<int>(parts), search);
  const size_t at = first.load();
  if (at == count) return;
  const auto channels = static_cast<size_t>(tensor.channels);
  const auto width = static_cast<size_t>(tensor.width);
  const auto height = static_cast<size_t>(tensor.height);
  const size_t pixel = at / channels;
  fail(ErrorCode::input, "input '%s': NaN at image %zu, row %zu, column %zu, channel %zu; expected numbers",
       tensor.name.c_str(), pixel / width / height, pixel / width % height, pixel % width, at % channels);
}

}  // namespace phonebit::engine
