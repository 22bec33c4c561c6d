// Passes over a caller's device memory.
#include "opencl/cl_functions.h"
#include "opencl/opencl_backend.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

/// A caller's memory object, checked: in our context, a buffer, large enough.
cl_mem checked_memory(const Context& context, const DeviceBuffer& buffer, size_t bytes,
                      const std::string& name) {
  const auto memory = static_cast<cl_mem>(buffer.memory);
  const char* const what = name.c_str();
  if (memory == nullptr) fail(ErrorCode::input, "tensor '%s': the device buffer is null", what);
  size_t size = 0;
  cl_context owner = nullptr;
  check(api().clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr), "clGetMemObjectInfo",
        what);
  check(api().clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof owner, &owner, nullptr), "clGetMemObjectInfo",
        what);
  if (owner != context.get())
    fail(ErrorCode::input,
         "tensor '%s': the device buffer belongs to another OpenCL context; load the network with that "
         "context, or its queue, as device",
         what);
  if (buffer.offset > size || size - buffer.offset < bytes)
    fail(ErrorCode::input,
         "tensor '%s': got a device buffer of %zu bytes with %zu to skip, expected %zu bytes", what, size,
         buffer.offset, bytes);
  return memory;
}

}  // namespace

void OpenClBackend::forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                      const std::vector<DeviceBuffer>& outputs, int batch) {
  if (batch < 1 || batch > executor_.largest_batch())
    fail(ErrorCode::input, "batch: got %d, expected 1 to %d on %s", batch, executor_.largest_batch(),
         label_.c_str());
  if (inputs.size() != model_.inputs.size() || outputs.size() != model_.outputs.size())
    fail(ErrorCode::input, "got %zu inputs and %zu outputs, expected %zu and %zu", inputs.size(),
         outputs.size(), model_.inputs.size(), model_.outputs.size());
  prepare(batch);
  // Sub-buffers stay until the next call: kernels do not retain their arguments before they are enqueued.
  caller_parts_.clear();
  struct Copy {
    cl_mem from, to;
    size_t from_offset, to_offset, bytes;
  };
  std::vector<Copy> before, after;
  const auto bind = [&](int tensor, const DeviceBuffer& buffer, bool is_input) -> cl_mem {
    const loader::Tensor& info = model_.tensor(tensor);
    const size_t bytes = info.bytes() * static_cast<size_t>(batch);
    const cl_mem memory = checked_memory(*context_, buffer, bytes, info.name);
    const bool is_home = executor_.storage().homes().home(tensor).place ==
                         (is_input ? analysis::Place::input : analysis::Place::output);
    if (is_home && buffer.offset == 0) return memory;
    if (is_home && context_->device().has_overlapping_parts &&
        buffer.offset % context_->device().base_align_bytes == 0) {
      caller_parts_.push_back(context_->sub_buffer(memory, buffer.offset, bytes));
      return caller_parts_.back().get();
    }
    // Where OpenCL has no view of the part, or an output is an input passed through, the device copies.
    const cl_mem own = executor_.storage().memory(tensor).buffer;
    if (is_input)
      before.push_back({memory, own, buffer.offset, 0, bytes});
    else
      after.push_back({own, memory, 0, buffer.offset, bytes});
    return own;
  };
  std::vector<cl_mem> bound_inputs, bound_outputs;
  for (size_t i = 0; i < inputs.size(); ++i) bound_inputs.push_back(bind(model_.inputs[i], inputs[i], true));
  executor_.bind_terminals(bound_inputs, {});
  for (size_t i = 0; i < outputs.size(); ++i)
    bound_outputs.push_back(bind(model_.outputs[i], outputs[i], false));
  executor_.bind_terminals(bound_inputs, bound_outputs);
  const auto run = [&](const std::vector<Copy>& copies) {
    for (const Copy& copy : copies)
      check(api().clEnqueueCopyBuffer(context_->queue(), copy.from, copy.to, copy.from_offset, copy.to_offset,
                                      copy.bytes, 0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
  };
  try {
    run(before);
    executor_.enqueue(false, nullptr);
    run(after);
  } catch (...) {
    executor_.bind_terminals({}, {});
    throw;
  }
  executor_.bind_terminals({}, {});
  check(api().clFlush(context_->queue()), "clFlush");
}

}  // namespace phonebit::engine::opencl
