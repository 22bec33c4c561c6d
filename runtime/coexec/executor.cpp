#include "coexec/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "gpu/staging.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

/// Keeps the minimum time of an op that runs in several stages; 0: none yet.
void keep_minimum(double& minimum, double us) { minimum = minimum == 0.0 ? us : std::min(minimum, us); }

std::string describe(const loader::Model& model, const loader::Op& op, const OutputPart& part) {
  if (analysis::is_whole(model, op, part)) return "";
  const OutputPart whole = analysis::whole_part(model, op);
  if (part.row_begin == 0 && part.row_end == whole.row_end)
    return format_text(" channels %d:%d", part.channel_begin, part.channel_end);
  return format_text(" rows %d:%d", part.row_begin, part.row_end);
}

}  // namespace

Executor::Executor(const Processors& processors, Schedule schedule, Sharing sharing,
                   Synchronization synchronization, Reuse reuse)
    : processors_(processors),
      schedule_(std::move(schedule)),
      budget_(processors.options.max_memory_bytes),
      views_(processors.model, schedule_, *processors.device, processors.options.precision, sharing, reuse,
             budget_),
      gpu_layers_(processors.model, processors.device, processors.programs, processors.options, views_),
      exchange_(make_exchange(sharing, schedule_, views_)),
      synchronizer_(make_synchronizer(synchronization, *processors.device, processors.programs,
                                      std::chrono::milliseconds(processors.options.sync_limit_ms))),
      runs_ahead_(synchronizer_->can_run_ahead() && exchange_->can_run_ahead()),
      queue_(&processors.device->queue()),
      points_(schedule_.stages().size()) {
  try {
    bind_gpu_layers();
    make_cpu_layers();
  } catch (...) {
    recover();  // no destructor runs, and kernels in the queue use what is freed now
    throw;
  }
}

void Executor::bind_gpu_layers() {
  const loader::Model& model = processors_.model;
  std::vector<bool> is_bound(model.ops.size(), false);
  for (const Stage& stage : schedule_.stages()) {
    for (const PlacedPart& placed : stage.gpu) {
      if (is_bound[placed.op]) continue;
      is_bound[placed.op] = true;
      budget_.take(gpu::max_weight_bytes(model, model.ops[placed.op]), "weights");
      const OutputPart whole = analysis::whole_part(model, model.ops[placed.op]);
      const bool has_all_channels =
          placed.part.channel_begin == 0 && placed.part.channel_end == whole.channel_end;
      if (has_all_channels)
        gpu_layers_.prepare(placed.op);
      else
        gpu_layers_.prepare_channel_parts(placed.op);
      gpu_layers_.bind_part(placed.op, placed.part);
      // Drivers finish compiling when a kernel is first run, and the CPU waits for the GPU only so long.
      gpu_layers_.enqueue(placed.op, processors_.device->queue(), nullptr);
    }
  }
  processors_.device->queue().finish();
}

void Executor::make_cpu_layers() {
  cpu::PackingList packing;
  const cpu::BuildContext context{processors_.model, processors_.isa, processors_.pool.threads(),   views_,
                                  budget_,           packing,         processors_.options.precision};
  size_t scratch = 0;
  for (const Stage& stage : schedule_.stages()) {
    for (const PlacedPart& placed : stage.cpu) {
      if (find_cpu_layer(placed) != nullptr) continue;
      const OutputPart part =
          analysis::whole_words(processors_.model, processors_.model.ops[placed.op], placed.part);
      cpu_layers_.push_back({placed, cpu::make_layer(context, placed.op, part)});
      scratch = std::max(scratch, cpu_layers_.back().layer->scratch_bytes());
    }
  }
  budget_.take(scratch, "scratch memory");
  scratch_ = memory::AlignedBuffer(scratch, "scratch memory");
  for (const CpuLayer& of_cpu : cpu_layers_) of_cpu.layer->set_scratch(scratch_.data());
  for (const Stage& stage : schedule_.stages()) {
    cpu_work_.emplace_back();
    for (const PlacedPart& placed : stage.cpu) cpu_work_.back().push_back(find_cpu_layer(placed));
  }
  packed_weights_ = packing.run(processors_.pool);
}

cpu::Layer* Executor::find_cpu_layer(const PlacedPart& placed) const {
  const auto found = std::find_if(cpu_layers_.begin(), cpu_layers_.end(), [&](const CpuLayer& layer) {
    return layer.placed.op == placed.op && layer.placed.part == placed.part;
  });
  return found != cpu_layers_.end() ? found->layer.get() : nullptr;
}

void Executor::run(const std::byte* const* inputs, std::byte* const* outputs,
                   const Cancellation& cancellation) {
  queue_ = &processors_.device->queue();
  run_schedule(inputs, outputs, cancellation, nullptr);
}

void Executor::run_schedule(const std::byte* const* inputs, std::byte* const* outputs,
                            const Cancellation& cancellation, PartClock* clock) {
  const std::vector<Stage>& stages = schedule_.stages();
  synchronizer_->begin(static_cast<int>(stages.size()), *queue_);
  events_.clear();
  transferred_ = -1;
  size_t enqueued = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const size_t end = schedule_.end_of_queue(enqueued, i, runs_ahead_);
    const bool is_more = enqueued < end;
    while (enqueued < end) enqueue_stage(enqueued++, clock);
    if (is_more) queue_->flush();
    run_cpu_stage(i, inputs, outputs, cancellation, clock);
  }
  enqueue_from_cpu(static_cast<int>(stages.size()) - 1);
}

void Executor::enqueue_stage(size_t index, PartClock* clock) {
  const Stage& stage = schedule_.stages()[index];
  exchange_->enqueue_for_cpu(stage, *queue_);
  const bool has_commands = exchange_->has_commands_for_cpu(stage);
  const bool cpu_waits = stage.cpu_waits || has_commands;
  const bool gpu_waits = stage.gpu_waits_for > transferred_;
  const bool has_events = clock != nullptr || !runs_ahead_;
  const bool is_last = has_events && !has_commands && !events_.empty();
  if (cpu_waits || gpu_waits)
    points_[index] = synchronizer_->enqueue_point(cpu_waits ? static_cast<int>(index) : -1,
                                                  gpu_waits ? stage.gpu_waits_for : -1, events_, is_last);
  enqueue_from_cpu(stage.gpu_waits_for);
  bool waits = gpu_waits;
  for (const PlacedPart& placed : stage.gpu) {
    const size_t begin = events_.size();
    gpu_layers_.enqueue(placed.op, *queue_, has_events ? &events_ : nullptr);
    if (clock != nullptr) clock->gpu.push_back({placed.op, waits, begin, events_.size()});
    waits = false;
  }
}

/// What the CPU transfers in all stages up to `last` that are not yet in the queue.
void Executor::enqueue_from_cpu(int last) {
  for (; transferred_ < last; ++transferred_)
    exchange_->enqueue_from_cpu(schedule_.stages()[static_cast<size_t>(transferred_ + 1)], *queue_);
}

void Executor::run_cpu_stage(size_t index, const std::byte* const* inputs, std::byte* const* outputs,
                             const Cancellation& cancellation, PartClock* clock) {
  const Stage& stage = schedule_.stages()[index];
  const bool is_first = index == 0, is_last = index + 1 == schedule_.stages().size();
  if (stage.cpu_waits || exchange_->has_commands_for_cpu(stage))
    synchronizer_->wait_for_gpu(static_cast<int>(index), points_[index]);
  exchange_->begin_cpu(stage);
  const auto bytes = [&](int tensor) { return processors_.model.tensor(tensor).bytes(); };
  for (size_t i = 0; is_first && i < schedule_.inputs().size(); ++i) {
    const int tensor = schedule_.inputs()[i];
    std::memcpy(views_.cpu_address(tensor), inputs[i], bytes(tensor));
  }
  for (size_t i = 0; i < stage.cpu.size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    cpu::run_layer(*cpu_work_[index][i], processors_.pool, cancellation);
    const double us = Microseconds(std::chrono::steady_clock::now() - begin).count();
    if (clock != nullptr) keep_minimum(clock->cpu_us[stage.cpu[i].op], us);
  }
  for (size_t i = 0; is_last && i < schedule_.outputs().size(); ++i) {
    const int tensor = schedule_.outputs()[i];
    std::memcpy(outputs[i], views_.cpu_address(tensor), bytes(tensor));
  }
  exchange_->end_cpu(stage);
  synchronizer_->finish_cpu(static_cast<int>(index));
}

void Executor::read(int tensor, std::byte* to) {
  const TensorUse& use = schedule_.use(tensor);
  const loader::Tensor& of_tensor = processors_.model.tensor(tensor);
  std::vector<std::byte> view(of_tensor.bytes());
  const auto read_memory = [&](const gpu::DeviceMemory& memory) {
    gpu::read_buffer(processors_.device->queue(), memory, views_.bytes_of(tensor), views_.is_half(tensor),
                     true, view.data());
  };
  if (use.written_by_gpu) {
    read_memory(views_.memory(tensor));
    copy_bytes(byte_range_of(of_tensor, *use.written_by_gpu), view.data(), to);
  }
  if (!use.written_by_cpu) return;
  const gpu::Region range = byte_range_of(of_tensor, *use.written_by_cpu);
  if (views_.mapped(tensor) == nullptr) return copy_bytes(range, views_.cpu_address(tensor), to);
  read_memory(*views_.mapped(tensor));
  copy_bytes(range, view.data(), to);
}

void Executor::run_timed(const std::byte* const* inputs, std::byte* const* outputs,
                         const Cancellation& cancellation, std::vector<double>& cpu,
                         std::vector<double>& gpu) {
  processors_.device->queue().finish();  // it may still transfer data
  queue_ = &processors_.device->profiling_queue();
  PartClock clock{cpu, {}};
  run_schedule(inputs, outputs, cancellation, &clock);
  queue_->finish();
  uint64_t ended = 0;
  for (const TimedPart& part : clock.gpu) {
    if (part.begin == part.end) continue;
    const gpu::EventSpan first = events_[part.begin]->span();
    uint64_t from = ended;
    if (part.waits || ended == 0)  // enqueued early, or when the CPU had finished
      from = std::max(from, runs_ahead_ ? first.begin : first.queued);
    ended = events_[part.end - 1]->span().end;
    keep_minimum(gpu[part.op], 1e-3 * static_cast<double>(ended - from));
  }
}

std::string Executor::kernel(size_t op) const {
  const loader::Model& model = processors_.model;
  std::string result;
  const auto add = [&](const std::string& text) { result += (result.empty() ? "" : " + ") + text; };
  for (const Stage& stage : schedule_.stages()) {
    for (const PlacedPart& placed : stage.gpu)
      if (placed.op == op)
        add("gpu " + gpu_layers_.layer(op).kernel + describe(model, model.ops[op], placed.part));
    for (const PlacedPart& placed : stage.cpu)
      if (placed.op == op)
        add("cpu " + find_cpu_layer(placed)->kernel() + describe(model, model.ops[op], placed.part));
    if (!result.empty()) break;
  }
  return result;
}

size_t Executor::weight_bytes() const {
  size_t bytes = 0;
  for (const CpuLayer& of_cpu : cpu_layers_) bytes += of_cpu.layer->packed_bytes();
  for (size_t i = 0; i < processors_.model.ops.size(); ++i) bytes += gpu_layers_.layer(i).weight_bytes;
  return bytes;
}

void Executor::recover() noexcept {
  synchronizer_->release();
  queue_->drain();
}

}  // namespace phonebit::engine::coexec
