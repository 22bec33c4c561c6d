#include "engine/buffer_checks.h"

#include <cstdint>
#include <limits>

#include "types/fail.h"

namespace phonebit::engine {
namespace {

bool holds_levels(const InputBuffer& buffer) { return buffer.is_levels; }
bool holds_levels(const OutputBuffer& /*buffer*/) { return false; }

template <class Buffer>
void check_buffer(const char* role, const TensorInfo& tensor, const Buffer& buffer, int batch) {
  const bool is_bytes = tensor.dtype == ElementType::u8 || holds_levels(buffer);
  const size_t image_bytes = is_bytes ? static_cast<size_t>(tensor.elements()) : tensor.bytes();
  const auto images = static_cast<size_t>(batch);
  const bool is_countable = images <= std::numeric_limits<size_t>::max() / image_bytes;
  if (!is_countable || buffer.bytes != images * image_bytes)
    fail(ErrorCode::input, "%s '%s': got a buffer of %zu bytes, expected %zu for each of %d images", role,
         tensor.name.c_str(), buffer.bytes, image_bytes, batch);
  if (buffer.data == nullptr)
    fail(ErrorCode::input, "%s '%s': the buffer is null", role, tensor.name.c_str());
  if (!is_bytes && reinterpret_cast<uintptr_t>(buffer.data) % sizeof(float) != 0)
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
    check_buffer(role, tensors[static_cast<size_t>(which[i])], buffers[i], batch);
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

}  // namespace phonebit::engine
