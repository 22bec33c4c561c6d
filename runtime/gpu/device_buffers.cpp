// Passes over a caller's device memory.
#include "gpu/gpu_backend.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

void GpuBackend::forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                   const std::vector<DeviceBuffer>& outputs, int batch) {
  if (batch < 1 || batch > executor_.largest_batch())
    fail(ErrorCode::input, "batch: got %d, expected 1 to %d on %s", batch, executor_.largest_batch(),
         label_.c_str());
  if (inputs.size() != model_.inputs.size() || outputs.size() != model_.outputs.size())
    fail(ErrorCode::input, "got %zu inputs and %zu outputs, expected %zu and %zu", inputs.size(),
         outputs.size(), model_.inputs.size(), model_.outputs.size());
  prepare(batch);
  // Views of callers' memory stay until the next call: kernels do not retain their arguments before they are enqueued.
  caller_parts_.clear();
  struct Copy {
    const DeviceMemory &from, &to;
    size_t from_offset, to_offset, bytes;
  };
  std::vector<Copy> before, after;
  const auto bind = [&](int tensor, const DeviceBuffer& buffer, bool is_input) -> const DeviceMemory* {
    const loader::Tensor& info = model_.tensor(tensor);
    const size_t bytes = info.bytes() * static_cast<size_t>(batch);
    const auto keep = [&](std::unique_ptr<DeviceMemory> memory) -> const DeviceMemory* {
      caller_parts_.push_back(std::move(memory));
      return caller_parts_.back().get();
    };
    const DeviceMemory* const memory = keep(device_->borrow(buffer, bytes, info.name.c_str()));
    const bool is_home = executor_.storage().homes().home(tensor).place ==
                         (is_input ? analysis::Place::input : analysis::Place::output);
    if (is_home && buffer.offset == 0) return memory;
    if (is_home && device_->facts().has_overlapping_parts &&
        buffer.offset % device_->facts().base_align_bytes == 0)
      return keep(device_->part(*memory, buffer.offset, bytes));
    // Where the device has no view of the part, or an output is an input passed through, it copies.
    const DeviceMemory& own = executor_.storage().memory(tensor);
    if (is_input)
      before.push_back({*memory, own, buffer.offset, 0, bytes});
    else
      after.push_back({own, *memory, 0, buffer.offset, bytes});
    return &own;
  };
  DeviceStorage::Terminals bound_inputs, bound_outputs;
  for (size_t i = 0; i < inputs.size(); ++i) bound_inputs.push_back(bind(model_.inputs[i], inputs[i], true));
  executor_.bind_terminals(bound_inputs, {});
  for (size_t i = 0; i < outputs.size(); ++i)
    bound_outputs.push_back(bind(model_.outputs[i], outputs[i], false));
  executor_.bind_terminals(bound_inputs, bound_outputs);
  const auto run = [&](const std::vector<Copy>& copies) {
    for (const Copy& copy : copies)
      device_->queue().copy(copy.from, copy.from_offset, copy.to, copy.to_offset, copy.bytes);
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
  device_->queue().flush();
}

}  // namespace phonebit::engine::gpu
