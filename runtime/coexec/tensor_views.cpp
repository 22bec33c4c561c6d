#include "coexec/tensor_views.h"

#include <algorithm>
#include <cstring>

#include "analysis/op_tensors.h"
#include "coexec/region.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

using loader::Model;
using loader::Tensor;

namespace {

/// Caches work in lines: a line that both write at a time belongs to one memory only where it is coherent.
constexpr size_t kCacheLine = 64;

bool begins_at_whole_words(const OutputPart& part) { return part.channel_begin % 32 == 0; }

/// Whether both views may be one memory. SVM is coherent, so processors may even write neighbouring words.
/// Mapped memory may not be: there, what both write must lie in different cache lines.
bool may_be_one(const Tensor& tensor, const TensorUse& use, Sharing sharing) {
  if (!use.is_published || sharing == Sharing::copy) return false;
  if (!use.written_by_cpu || !use.written_by_gpu) return true;
  if (sharing == Sharing::svm) return begins_at_whole_words(*use.written_by_cpu);
  const Region region = region_of(tensor, *use.written_by_cpu);
  return region.runs == 1 && region.offset % kCacheLine == 0;
}

}  // namespace

OutputPart from_whole_words(const OutputPart& part) {
  OutputPart result = part;
  result.channel_begin -= result.channel_begin % 32;
  return result;
}

TensorViews::TensorViews(const Model& model, const Schedule& schedule, opencl::Context& context,
                         Sharing sharing, analysis::MemoryBudget& budget)
    : roots_(model.tensors.size()), views_(model.tensors.size()) {
  const size_t count = model.tensors.size();
  for (size_t i = 0; i < count; ++i) roots_[i] = static_cast<int>(i);
  for (const loader::Op& op : model.ops) {
    if (op.kind != format::OpKind::kReshape) continue;
    roots_[static_cast<size_t>(op.record.value_output)] = root(op.operands[0]);
  }
  std::vector<bool> for_cpu(count, false), for_gpu(count, false), is_one(count, true);
  for (size_t i = 0; i < count; ++i) {
    const TensorUse& use = schedule.use(static_cast<int>(i));
    const auto of_root = static_cast<size_t>(roots_[i]);
    for_cpu[of_root] = for_cpu[of_root] || use.is_touched_by_cpu();
    for_gpu[of_root] = for_gpu[of_root] || use.is_touched_by_gpu();
    if (use.is_touched_by_cpu() || use.is_touched_by_gpu())
      is_one[of_root] = is_one[of_root] && may_be_one(model.tensors[i], use, sharing);
  }
  // Outputs of one layer are one decision: its part on the CPU begins at one channel.
  for (const loader::Op& op : model.ops) {
    const std::vector<int> written = analysis::tensors_written(op);
    const bool all = std::all_of(written.begin(), written.end(),
                                 [&](int t) { return is_one[static_cast<size_t>(root(t))]; });
    for (const int tensor : written) is_one[static_cast<size_t>(root(tensor))] = all;
  }
  for (size_t i = 0; i < count; ++i) {
    if (roots_[i] != static_cast<int>(i) || !(for_cpu[i] || for_gpu[i])) continue;
    views_[i].is_one = for_cpu[i] && for_gpu[i] && is_one[i];
    const size_t bytes = model.tensors[i].bytes();
    const size_t views = for_cpu[i] && for_gpu[i] && !is_one[i] ? 2 : 1;
    budget.take(bytes * views, "activations");
    bytes_ += bytes * views;
    allocate(static_cast<int>(i), for_cpu[i], for_gpu[i], bytes, context, sharing);
  }
}

void TensorViews::allocate(int tensor, bool for_cpu, bool for_gpu, size_t bytes, opencl::Context& context,
                           Sharing sharing) {
  View& view = mutable_view(tensor);
  if (for_gpu && sharing == Sharing::svm) {
    view.svm = std::make_unique<opencl::SvmMemory>(context, bytes, "activations");
    view.device = context.buffer_over(view.svm->data(), bytes, "activations");
  } else if (for_gpu) {
    view.device = view.is_one ? context.host_accessible_buffer(bytes, "activations")
                              : context.buffer(bytes, nullptr, "activations");
  }
  if (view.is_one) {
    view.address = view.svm ? static_cast<std::byte*>(view.svm->data()) : nullptr;
  } else if (for_cpu && for_gpu && sharing == Sharing::map) {
    view.host_accessible = context.host_accessible_buffer(bytes, "activations");
  } else if (for_cpu) {
    view.host = memory::AlignedBuffer(bytes, "activations");
    view.address = view.host.data();
  }
}

cl_mem TensorViews::mapped(int tensor) const {
  const View& of_tensor = view(tensor);
  if (of_tensor.host_accessible) return of_tensor.host_accessible.get();
  return of_tensor.is_one && !of_tensor.svm ? of_tensor.device.get() : nullptr;
}

void TensorViews::set_address(int tensor, std::byte* address) {
  View& of_tensor = mutable_view(tensor);
  if (of_tensor.address == address) return;
  of_tensor.address = address;
  for (const Slot& slot : slots_)
    if (root(slot.tensor) == root(tensor)) {
      std::byte* const target = address + slot.offset;
      std::memcpy(slot.pointer_variable, &target, sizeof target);
    }
}

opencl::DeviceMemory TensorViews::memory(int tensor) const {
  const View& of_tensor = view(tensor);
  return {of_tensor.device.get(), of_tensor.svm ? of_tensor.svm->data() : nullptr};
}

void TensorViews::bind_slot(int tensor, size_t offset, void* pointer_variable) {
  slots_.push_back({tensor, offset, pointer_variable});
  std::byte* const address = cpu_address(tensor);
  std::byte* const target = address != nullptr ? address + offset : nullptr;
  std::memcpy(pointer_variable, &target, sizeof target);
}

}  // namespace phonebit::engine::coexec
