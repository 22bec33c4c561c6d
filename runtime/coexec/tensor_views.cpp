#include "coexec/tensor_views.h"

#include <algorithm>
#include <cstring>

#include "analysis/op_tensors.h"
#include "gpu/device_storage.h"
#include "memory/arena_plan.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

using loader::Model;
using loader::Tensor;

namespace {

/// For errors.
constexpr const char* kWhat = "activations";

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

/// Shared virtual memory is coherent, so processors may even write neighbouring words, of which the CPU writes
/// whole ones: what it computes too much is for a view of its own.
bool may_both_write(const Tensor& tensor, const OutputPart& of_cpu) {
  return of_cpu.channel_begin % 32 == 0 &&
         (of_cpu.channel_end % 32 == 0 || of_cpu.channel_end == tensor.channels);
}

/// Whether memory can be mapped once per inference, so that neither processor waits for it: what the GPU has
/// written, the CPU has waited for. What the CPU writes is mapped when it waits for the queue anyway, and it
/// must have finished with it where the GPU waits for it.
bool can_be_mapped(const TensorUse& use, const Schedule& schedule, const LifetimeOrder& order) {
  if (!use.written_by_cpu || use.written_by_gpu) return !use.written_by_cpu;
  const int first = use.of_cpu.first;
  const bool is_queue_awaited = first == 0 || schedule.stages()[static_cast<size_t>(first)].cpu_waits;
  return is_queue_awaited && order.stage_of_transfer(use.of_cpu.last) <= use.of_gpu.first;
}

}  // namespace

gpu::Region byte_range_of(const loader::Tensor& tensor, const OutputPart& part) {
  const size_t pixel = channel_bytes(tensor, tensor.channels);
  const size_t row = pixel * static_cast<size_t>(tensor.width);
  const size_t first_row = row * static_cast<size_t>(part.row_begin);
  const auto rows = static_cast<size_t>(part.row_end - part.row_begin);
  const size_t begin = channel_bytes(tensor, part.channel_begin),
               end = channel_bytes(tensor, part.channel_end);
  if (end - begin == pixel) return {first_row, rows * row, 1, rows * row};
  return {first_row + begin, end - begin, rows * static_cast<size_t>(tensor.width), pixel};
}

void copy_bytes(const gpu::Region& range, const std::byte* from, std::byte* to) {
  for (size_t run = 0; run < range.runs; ++run) {
    const size_t at = range.offset + run * range.pitch;
    std::memcpy(to + at, from + at, range.run_bytes);
  }
}

TensorViews::TensorViews(const Model& model, const Schedule& schedule, gpu::Device& device,
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
  std::vector<bool> is_for_cpu(count);  // by root
  for (size_t i = 0; i < count; ++i)
    if (schedule.use(static_cast<int>(i)).is_used_by_cpu()) is_for_cpu[static_cast<size_t>(roots_[i])] = true;
  for (size_t i = 0; i < count; ++i) {
    const auto tensor = static_cast<int>(i);
    const auto of_root = static_cast<size_t>(roots_[i]);
    if (gpu::is_stored_as_half(model, homes, tensor, precision) && schedule.use(tensor).is_used_by_gpu() &&
        !is_for_cpu[of_root])
      is_half_[of_root] = true;
  }
  allocate(requests_of(find_ones(schedule, sharing), schedule, sharing), schedule, device, reuse, budget);
}

std::vector<bool> TensorViews::find_ones(const Schedule& schedule, Sharing sharing) const {
  const size_t count = model_.tensors.size();
  std::vector<bool> is_one(count, sharing != Sharing::copied);
  std::vector<TensorUse> uses(count);  // by root, of all its tensors
  for (size_t i = 0; i < count; ++i) {
    const TensorUse& use = schedule.use(static_cast<int>(i));
    if (!use.is_used_by_cpu() && !use.is_used_by_gpu()) continue;
    const auto of_root = static_cast<size_t>(roots_[i]);
    const bool is_written_by_both = use.written_by_cpu && use.written_by_gpu;
    if (!use.is_published || (is_written_by_both && !may_both_write(model_.tensors[i], *use.written_by_cpu)))
      is_one[of_root] = false;
    TensorUse& all = uses[of_root];
    if (use.written_by_cpu) all.written_by_cpu = use.written_by_cpu;
    if (use.written_by_gpu) all.written_by_gpu = use.written_by_gpu;
    all.of_cpu.extend(use.of_cpu);
    all.of_gpu.extend(use.of_gpu);
  }
  if (sharing == Sharing::mapped) {
    const LifetimeOrder order(schedule);
    for (size_t i = 0; i < count; ++i) is_one[i] = is_one[i] && can_be_mapped(uses[i], schedule, order);
    return is_one;
  }
  // Outputs of one layer are one decision: its part on the CPU has the same channels of each.
  for (const loader::Op& op : model_.ops) {
    const std::vector<int> written = analysis::tensors_written(op);
    const bool all = std::all_of(written.begin(), written.end(),
                                 [&](int t) { return is_one[static_cast<size_t>(root(t))]; });
    for (const int tensor : written) is_one[static_cast<size_t>(root(tensor))] = all;
  }
  return is_one;
}

gpu::Region TensorViews::range(int tensor, const OutputPart& part) const {
  return byte_range_of(model_.tensor(tensor), part);
}

size_t TensorViews::bytes_of(int tensor) const {
  const size_t bytes = model_.tensor(tensor).bytes();
  return is_half(tensor) ? bytes / 2 : bytes;
}

/// Who uses which view when. A command of the queue that copies to the CPU's view before stage i, or maps it,
/// follows what the GPU does in stage i - 1, before it waits for anything else.
std::vector<TensorViews::Request> TensorViews::requests_of(const std::vector<bool>& is_one,
                                                           const Schedule& schedule, Sharing sharing) {
  const LifetimeOrder order(schedule);
  const size_t count = model_.tensors.size();
  std::vector<Lifetime> cpu(count), gpu(count);
  const auto lifetime = [&](std::vector<Lifetime>& of, int tensor) -> Lifetime& {
    return of[static_cast<size_t>(root(tensor))];
  };
  const auto tensors_of = [&](const PlacedPart& placed) {
    std::vector<int> tensors = analysis::tensors_read(model_.ops[placed.op]);
    const std::vector<int> written = analysis::tensors_written(model_.ops[placed.op]);
    tensors.insert(tensors.end(), written.begin(), written.end());
    return tensors;
  };
  const auto transfers_at = [&](int tensor, Moment by_cpu, Moment first, Moment last) {
    lifetime(cpu, tensor).by_cpu(by_cpu);  // it copies in shared virtual memory
    if (sharing == Sharing::shared) return lifetime(gpu, tensor).by_cpu(by_cpu);
    for (std::vector<Lifetime>* const side : {&cpu, &gpu}) lifetime(*side, tensor).by_gpu(first, last);
  };
  const int stages = static_cast<int>(schedule.stages().size());
  for (int i = 0; i < stages; ++i) {
    const Stage& stage = schedule.stages()[static_cast<size_t>(i)];
    Moment of_cpu{i}, of_gpu{i};
    for (const PlacedPart& placed : stage.cpu) {
      ++of_cpu.step;
      for (const int tensor : tensors_of(placed)) lifetime(cpu, tensor).by_cpu(of_cpu);
    }
    for (const PlacedPart& placed : stage.gpu) {
      ++of_gpu.step;
      for (const int tensor : tensors_of(placed)) lifetime(gpu, tensor).by_gpu(of_gpu);
    }
    for (const DataTransfer& transfer : stage.to_cpu)
      transfers_at(transfer.tensor, {i}, {i - 1, Moment::kEnd}, {i});
    const Moment transferred{order.stage_of_transfer(i)};
    for (const DataTransfer& transfer : stage.to_gpu)
      transfers_at(transfer.tensor, {i, Moment::kEnd}, transferred, transferred);
  }
  for (const int tensor : schedule.inputs()) lifetime(cpu, tensor).by_cpu({0});
  for (const int tensor : schedule.outputs()) lifetime(cpu, tensor).by_cpu({stages - 1, Moment::kEnd});

  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) {
    const bool for_cpu = cpu[i].last_cpu.stage >= 0, for_gpu = gpu[i].last_gpu.stage >= 0;
    if (roots_[i] != static_cast<int>(i) || !(for_cpu || for_gpu)) continue;
    const size_t bytes = bytes_of(static_cast<int>(i));
    const Kind of_gpu = sharing == Sharing::shared ? Kind::shared : Kind::device;
    if (for_cpu && for_gpu && is_one[i]) {
      Lifetime both = cpu[i];
      both.by_gpu(gpu[i].first_gpu, gpu[i].last_gpu);
      if (sharing == Sharing::mapped) {
        both.by_gpu({both.first_cpu.stage - 1, Moment::kEnd}, {both.first_cpu.stage});
        both.by_gpu({order.stage_of_transfer(both.last_cpu.stage)});
      }
      const Kind kind = sharing == Sharing::shared ? Kind::shared : Kind::mapped;
      requests.push_back({kind, bytes, both, i, true, true});
      continue;
    }
    if (for_cpu) requests.push_back({Kind::host, bytes, cpu[i], i, true, false});
    if (for_gpu) requests.push_back({of_gpu, bytes, gpu[i], i, false, true});
  }
  return requests;
}

void TensorViews::allocate(const std::vector<Request>& requests, const Schedule& schedule,
                           gpu::Device& device, Reuse reuse, analysis::MemoryBudget& budget) {
  const LifetimeOrder order(schedule);
  std::vector<size_t> bytes;
  for (const Request& request : requests) bytes.push_back(request.bytes);
  const auto conflict = [&](size_t a, size_t b) {
    return reuse == Reuse::none || requests[a].kind != requests[b].kind ||
           !order.can_share(requests[a].lifetime, requests[b].lifetime);
  };
  const memory::SlotPlan plan = memory::plan_slots(bytes, conflict);
  for (const size_t of_slot : plan.slot_bytes) budget.take(of_slot, kWhat);
  bytes_ = plan.bytes();
  memories_ = std::vector<Memory>(plan.slot_bytes.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    const auto slot = static_cast<size_t>(plan.slot_of[i]);
    Memory& memory = memories_[slot];
    if (memory.bytes == 0) make(memory, request.kind, plan.slot_bytes[slot], device);
    View& view = views_[request.tensor];
    if (request.for_gpu) view.gpu = &memory;
    if (!request.for_cpu) continue;
    view.cpu = &memory;
    if (memory.kind == Kind::mapped) add_mapping(request, schedule);
    view.address = memory.kind == Kind::shared ? memory.buffer->address() : memory.host.data();
  }
}

void TensorViews::add_mapping(const Request& request, const Schedule& schedule) {
  bool is_written = false;
  for (size_t i = 0; i < roots_.size(); ++i)
    is_written |= roots_[i] == static_cast<int>(request.tensor) &&
                  schedule.use(static_cast<int>(i)).written_by_cpu.has_value();
  mapped_.push_back({static_cast<int>(request.tensor),
                     views_[request.tensor].cpu->buffer.get(),
                     request.bytes,
                     {request.lifetime.first_cpu.stage, request.lifetime.last_cpu.stage},
                     is_written});
}

void TensorViews::make(Memory& memory, Kind kind, size_t bytes, gpu::Device& device) {
  memory.kind = kind;
  memory.bytes = bytes;
  switch (kind) {
    case Kind::host:
      memory.host = memory::AlignedBuffer(bytes, kWhat);
      break;
    case Kind::mapped:
      memory.buffer = device.buffer(bytes, nullptr, kWhat, gpu::Device::Use::mapped);
      break;
    case Kind::device:
      memory.buffer = device.buffer(bytes, nullptr, kWhat);
      break;
    case Kind::shared:
      memory.buffer = device.buffer(bytes, nullptr, kWhat, gpu::Device::Use::shared);
      break;
  }
}

const gpu::DeviceMemory* TensorViews::mapped(int tensor) const {
  const Memory* const of_cpu = view(tensor).cpu;
  return of_cpu != nullptr && of_cpu->kind == Kind::mapped ? of_cpu->buffer.get() : nullptr;
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

void TensorViews::bind_slot(int tensor, size_t offset, void* pointer_variable) {
  slots_.push_back({tensor, offset, pointer_variable});
  std::byte* const address = cpu_address(tensor);
  std::byte* const target = address != nullptr ? address + offset : nullptr;
  std::memcpy(pointer_variable, &target, sizeof target);
}

}  // namespace phonebit::engine::coexec
