#include "coexec/tensor_views.h"

#include <algorithm>
#include <cstring>

#include "analysis/op_tensors.h"
#include "format/half.h"
#include "memory/arena_plan.h"
#include "opencl/device_storage.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

using loader::Model;
using loader::Tensor;

namespace {

/// Caches work in lines: a line that both write at a time belongs to one memory only where it is coherent.
constexpr size_t kCacheLine = 64;
/// For errors.
constexpr const char* kWhat = "activations";

/// Whether both views may be one memory. SVM is coherent, so processors may even write neighbouring words, of
/// which the CPU writes whole ones: what it computes too much is for a view of its own. Mapped memory may not
/// be coherent: there, what both write must lie in different cache lines.
bool may_be_one(const Tensor& tensor, const TensorUse& use, const Region& of_cpu, Sharing sharing) {
  if (!use.is_published || sharing == Sharing::copy) return false;
  if (!use.written_by_cpu || !use.written_by_gpu) return true;
  const OutputPart& part = *use.written_by_cpu;
  if (sharing == Sharing::svm)
    return part.channel_begin % 32 == 0 &&
           (part.channel_end % 32 == 0 || part.channel_end == tensor.channels);
  return of_cpu.runs == 1 && of_cpu.offset % kCacheLine == 0;
}

}  // namespace

TensorViews::TensorViews(const Model& model, const Schedule& schedule, opencl::Context& context,
                         Precision precision, Sharing sharing, Reuse reuse, analysis::MemoryBudget& budget)
    : model_(model),
      roots_(model.tensors.size()),
      is_half_(model.tensors.size()),
      views_(model.tensors.size()) {
  const size_t count = model.tensors.size();
  for (size_t i = 0; i < count; ++i) roots_[i] = static_cast<int>(i);
  for (const loader::Op& op : model.ops) {
    if (op.kind != format::OpKind::kReshape) continue;
    roots_[static_cast<size_t>(op.record.value_output)] = root(op.operands[0]);
  }
  const analysis::TensorHomes homes(model);
  for (size_t i = 0; i < count; ++i) {
    const auto tensor = static_cast<int>(i);
    if (opencl::is_stored_as_half(model, homes, tensor, precision) &&
        schedule.use(tensor).is_touched_by_gpu())
      is_half_[static_cast<size_t>(roots_[i])] = true;
  }
  std::vector<bool> is_one(count, true);
  for (size_t i = 0; i < count; ++i) {
    const auto tensor = static_cast<int>(i);
    const TensorUse& use = schedule.use(tensor);
    const auto of_root = static_cast<size_t>(roots_[i]);
    const Region of_cpu = use.written_by_cpu ? region(tensor, *use.written_by_cpu) : Region{};
    if (use.is_touched_by_cpu() || use.is_touched_by_gpu())
      is_one[of_root] = is_one[of_root] && may_be_one(model.tensors[i], use, of_cpu, sharing);
  }
  // Outputs of one layer are one decision: its part on the CPU has the same channels of each.
  for (const loader::Op& op : model.ops) {
    const std::vector<int> written = analysis::tensors_written(op);
    const bool all = std::all_of(written.begin(), written.end(),
                                 [&](int t) { return is_one[static_cast<size_t>(root(t))]; });
    for (const int tensor : written) is_one[static_cast<size_t>(root(tensor))] = all;
  }
  allocate(wishes_of(is_one, schedule, sharing), schedule, context, reuse, budget);
}

Region TensorViews::region(int tensor, const OutputPart& part) const {
  Region result = region_of(model_.tensor(tensor), part);
  if (!is_half(tensor)) return result;
  for (size_t* const bytes : {&result.offset, &result.run_bytes, &result.pitch}) *bytes /= 2;
  return result;
}

Region TensorViews::whole_region(int tensor) const {
  const Tensor& whole = model_.tensor(tensor);
  return region(tensor, {0, whole.height, 0, whole.channels});
}

void TensorViews::convert(const Handover& handover, bool to_floats) {
  if (view(handover.tensor).floats == nullptr) return;
  const Region of_half = region(handover.tensor, handover.part);
  auto* const floats = reinterpret_cast<float*>(cpu_address(handover.tensor));
  auto* const halves = reinterpret_cast<uint16_t*>(stored_address(handover.tensor));
  const size_t count = of_half.run_bytes / sizeof *halves;
  for (size_t run = 0; run < of_half.runs; ++run) {
    const size_t at = (of_half.offset + run * of_half.pitch) / sizeof *halves;
    if (to_floats)
      format::from_halves(halves + at, count, floats + at);
    else
      format::to_halves(floats + at, count, halves + at);
  }
}

/// Who uses which view when. A command of the queue that copies to the CPU's view before stage i, or maps it,
/// follows what the GPU does in stage i - 1, before it waits for anything else.
std::vector<TensorViews::Wish> TensorViews::wishes_of(const std::vector<bool>& is_one,
                                                      const Schedule& schedule, Sharing sharing) {
  const TouchOrder order(schedule);
  const size_t count = model_.tensors.size();
  std::vector<Touches> cpu(count), gpu(count);
  const auto touches = [&](std::vector<Touches>& of, int tensor) -> Touches& {
    return of[static_cast<size_t>(root(tensor))];
  };
  const auto computes = [&](int tensor, Moment moment) {
    touches(cpu, tensor).by_cpu(moment);
    if (sharing != Sharing::map) return;
    touches(cpu, tensor).by_gpu({moment.stage - 1, Moment::kEnd}, {moment.stage});
    touches(cpu, tensor).by_gpu({order.stage_of_hand_over(moment.stage)});
  };
  const auto tensors_of = [&](const PlacedPart& placed) {
    std::vector<int> tensors = analysis::tensors_read(model_.ops[placed.op]);
    const std::vector<int> written = analysis::tensors_written(model_.ops[placed.op]);
    tensors.insert(tensors.end(), written.begin(), written.end());
    return tensors;
  };
  const auto hands_over = [&](int tensor, Moment by_cpu, Moment first, Moment last) {
    touches(cpu, tensor).by_cpu(by_cpu);  // it copies in shared virtual memory, and converts
    if (sharing == Sharing::svm) return touches(gpu, tensor).by_cpu(by_cpu);
    for (std::vector<Touches>* const side : {&cpu, &gpu}) touches(*side, tensor).by_gpu(first, last);
  };
  const int stages = static_cast<int>(schedule.stages().size());
  for (int i = 0; i < stages; ++i) {
    const Stage& stage = schedule.stages()[static_cast<size_t>(i)];
    Moment of_cpu{i}, of_gpu{i};
    for (const PlacedPart& placed : stage.cpu) {
      ++of_cpu.step;
      for (const int tensor : tensors_of(placed)) computes(tensor, of_cpu);
    }
    for (const PlacedPart& placed : stage.gpu) {
      ++of_gpu.step;
      for (const int tensor : tensors_of(placed)) touches(gpu, tensor).by_gpu(of_gpu);
    }
    for (const Handover& handover : stage.to_cpu)
      hands_over(handover.tensor, {i}, {i - 1, Moment::kEnd}, {i});
    const Moment handed{order.stage_of_hand_over(i)};
    for (const Handover& handover : stage.to_gpu)
      hands_over(handover.tensor, {i, Moment::kEnd}, handed, handed);
  }
  for (const int tensor : schedule.inputs()) computes(tensor, {0});
  for (const int tensor : schedule.outputs()) computes(tensor, {stages - 1, Moment::kEnd});

  std::vector<Wish> wishes;
  for (size_t i = 0; i < count; ++i) {
    const bool for_cpu = cpu[i].last_cpu.stage >= 0, for_gpu = gpu[i].last_gpu.stage >= 0;
    if (roots_[i] != static_cast<int>(i) || !(for_cpu || for_gpu)) continue;
    const size_t bytes = whole_region(static_cast<int>(i)).bytes();
    if (for_cpu && is_half_[i])
      wishes.push_back(
          {Kind::host, model_.tensors[i].bytes(), {cpu[i].first_cpu, cpu[i].last_cpu}, i, true, false, true});
    const Kind of_gpu = sharing == Sharing::svm ? Kind::svm : Kind::device;
    if (for_cpu && for_gpu && is_one[i]) {
      Touches both = cpu[i];
      both.by_gpu(gpu[i].first_gpu, gpu[i].last_gpu);
      const Kind kind = sharing == Sharing::svm ? Kind::svm : Kind::host_accessible;
      wishes.push_back({kind, bytes, both, i, true, true, false});
      continue;
    }
    const bool is_mapped = for_gpu && sharing == Sharing::map;
    const Kind of_cpu = is_mapped ? Kind::host_accessible : Kind::host;
    if (for_cpu) wishes.push_back({of_cpu, bytes, cpu[i], i, true, false, false});
    if (for_gpu) wishes.push_back({of_gpu, bytes, gpu[i], i, false, true, false});
  }
  return wishes;
}

void TensorViews::allocate(const std::vector<Wish>& wishes, const Schedule& schedule,
                           opencl::Context& context, Reuse reuse, analysis::MemoryBudget& budget) {
  const TouchOrder order(schedule);
  std::vector<size_t> bytes;
  for (const Wish& wish : wishes) bytes.push_back(wish.bytes);
  const auto conflict = [&](size_t a, size_t b) {
    return reuse == Reuse::none || wishes[a].kind != wishes[b].kind ||
           !order.can_share(wishes[a].touches, wishes[b].touches);
  };
  const memory::SlotPlan plan = memory::plan_slots(bytes, conflict);
  for (const size_t of_slot : plan.slot_bytes) budget.take(of_slot, kWhat);
  bytes_ = plan.bytes();
  memories_ = std::vector<Memory>(plan.slot_bytes.size());
  for (size_t i = 0; i < wishes.size(); ++i) {
    const Wish& wish = wishes[i];
    const auto slot = static_cast<size_t>(plan.slot_of[i]);
    Memory& memory = memories_[slot];
    if (memory.bytes == 0) make(memory, wish.kind, plan.slot_bytes[slot], context);
    View& view = views_[wish.tensor];
    if (wish.is_floats) {
      view.floats = &memory;
      continue;
    }
    if (wish.for_gpu) view.gpu = &memory;
    if (!wish.for_cpu) continue;
    view.cpu = &memory;
    view.address = memory.svm ? static_cast<std::byte*>(memory.svm->data()) : memory.host.data();
  }
}

void TensorViews::make(Memory& memory, Kind kind, size_t bytes, opencl::Context& context) {
  memory.kind = kind;
  memory.bytes = bytes;
  switch (kind) {
    case Kind::host:
      memory.host = memory::AlignedBuffer(bytes, kWhat);
      break;
    case Kind::host_accessible:
      memory.buffer = context.host_accessible_buffer(bytes, kWhat);
      break;
    case Kind::device:
      memory.buffer = context.buffer(bytes, nullptr, kWhat);
      break;
    case Kind::svm:
      memory.svm = std::make_unique<opencl::SvmMemory>(context, bytes, kWhat);
      memory.buffer = context.buffer_over(memory.svm->data(), bytes, kWhat);
      break;
  }
}

cl_mem TensorViews::mapped(int tensor) const {
  const Memory* const of_cpu = view(tensor).cpu;
  return of_cpu != nullptr && of_cpu->kind == Kind::host_accessible ? of_cpu->buffer.get() : nullptr;
}

void TensorViews::set_address(int tensor, std::byte* address) {
  View& of_tensor = mutable_view(tensor);
  if (of_tensor.address == address) return;
  of_tensor.address = address;
  if (of_tensor.floats != nullptr) return;  // that is what pointers go to
  for (const Slot& slot : slots_)
    if (root(slot.tensor) == root(tensor)) {
      std::byte* const target = address + slot.offset;
      std::memcpy(slot.pointer_variable, &target, sizeof target);
    }
}

opencl::DeviceMemory TensorViews::memory(int tensor) const {
  const Memory* const of_gpu = view(tensor).gpu;
  if (of_gpu == nullptr) return {};
  return {of_gpu->buffer.get(), of_gpu->svm ? of_gpu->svm->data() : nullptr};
}

void TensorViews::bind_slot(int tensor, size_t offset, void* pointer_variable) {
  slots_.push_back({tensor, offset, pointer_variable});
  std::byte* const address = cpu_address(tensor);
  std::byte* const target = address != nullptr ? address + offset : nullptr;
  std::memcpy(pointer_variable, &target, sizeof target);
}

}  // namespace phonebit::engine::coexec
