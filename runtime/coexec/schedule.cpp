#include "coexec/schedule.h"

#include <algorithm>
#include <set>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"

namespace phonebit::engine::coexec {

using loader::Model;
using loader::Op;

namespace {

const Op& op_of(const Model& model, const PlacedPart& placed) { return model.ops[placed.op]; }

OutputPart whole_tensor(const loader::Tensor& tensor) { return {0, tensor.height, 0, tensor.channels}; }

/// What an op's part reads of its operand `operand`: the CPU computes whole words.
OutputPart read_by(const Model& model, const PlacedPart& placed, bool is_cpu, size_t operand) {
  const Op& op = op_of(model, placed);
  return analysis::part_read(model, op, operand,
                             is_cpu ? analysis::whole_words(model, op, placed.part) : placed.part);
}

/// What is in both; none: nothing.
std::optional<OutputPart> common(const std::optional<OutputPart>& a, const OutputPart& b) {
  if (!a) return std::nullopt;
  const OutputPart both{std::max(a->row_begin, b.row_begin), std::min(a->row_end, b.row_end),
                        std::max(a->channel_begin, b.channel_begin), std::min(a->channel_end, b.channel_end)};
  if (both.row_begin >= both.row_end || both.channel_begin >= both.channel_end) return std::nullopt;
  return both;
}

void extend(OutputPart& part, const OutputPart& more) {
  if (more.row_begin >= more.row_end) return;
  part = {std::min(part.row_begin, more.row_begin), std::max(part.row_end, more.row_end),
          std::min(part.channel_begin, more.channel_begin), std::max(part.channel_end, more.channel_end)};
}

}  // namespace

Schedule::Schedule(const Model& model, const ExecutionPlan& plan)
    : uses_(model.tensors.size()), inputs_(model.inputs), outputs_(model.outputs) {
  int count = 0;
  for (const PlannedPart& planned : plan.parts) count = std::max(count, planned.stage + 1);
  stages_ = std::vector<Stage>(static_cast<size_t>(count) + 2);
  for (const PlannedPart& planned : plan.parts) {
    Stage& stage = stages_[static_cast<size_t>(planned.stage) + 1];
    const PlacedPart placed{static_cast<size_t>(planned.layer), planned.part};
    (planned.processor == Processor::cpu ? stage.cpu : stage.gpu).push_back(placed);
  }
  find_uses(model);
  find_transfers(model);
}

Schedule::Schedule(const Model& model, size_t op, const std::optional<OutputPart>& cpu,
                   const std::optional<OutputPart>& gpu, int repeats)
    : uses_(model.tensors.size()), outputs_(analysis::tensors_written(model.ops[op])) {
  const std::vector<int> read = analysis::tensors_read(model.ops[op]);
  const std::set<int> distinct(read.begin(), read.end());
  inputs_.assign(distinct.begin(), distinct.end());
  stages_ = std::vector<Stage>(static_cast<size_t>(repeats) + 2);
  for (size_t i = 1; i + 1 < stages_.size(); ++i) {
    if (cpu) stages_[i].cpu.push_back({op, *cpu});
    if (gpu) stages_[i].gpu.push_back({op, *gpu});
  }
  find_uses(model);
  find_transfers(model);
  if (!cpu || !gpu) return;
  // Both read all of the result that the repetition before wrote.
  const Stage& one = stages_[1];
  for (size_t i = 2; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    stage.cpu_waits = true;
    stage.gpu_waits_for = static_cast<int>(i) - 1;
    stage.to_cpu.clear();
    for (const PlacedPart& placed : one.gpu)
      for (const int tensor : outputs_) stage.to_cpu.push_back({tensor, placed.part});
  }
  for (size_t i = 1; i + 1 < stages_.size(); ++i) {
    stages_[i].to_gpu.clear();
    for (const int tensor : outputs_) stages_[i].to_gpu.push_back({tensor, *cpu});
  }
  for (const int tensor : outputs_) mutable_use(tensor).is_read_by_gpu = true;
}

size_t Schedule::end_of_queue(size_t from, size_t index, bool runs_ahead) const {
  const size_t ahead = runs_ahead ? 1 : 0;
  const int unfinished = static_cast<int>(index + ahead);
  size_t end = from - std::min(from, ahead);
  while (end < stages_.size() && stages_[end].gpu_waits_for < unfinished) ++end;
  return std::min(end + ahead, stages_.size());
}

/// Who writes and reads what. Results are read by the CPU, which gives them out; what comes in it has
/// written.
void Schedule::find_uses(const Model& model) {
  for (const int tensor : inputs_) {
    mutable_use(tensor).written_by_cpu = whole_tensor(model.tensor(tensor));
    mutable_use(tensor).is_published = true;
    mutable_use(tensor).of_cpu.extend(0);
  }
  std::set<int> written_here;  // by layers of the present stage
  for (size_t index = 0; index < stages_.size(); ++index) {
    const Stage& stage = stages_[index];
    written_here.clear();
    for (const auto* parts : {&stage.cpu, &stage.gpu}) {
      for (const PlacedPart& placed : *parts) {
        for (const int tensor : analysis::tensors_written(op_of(model, placed))) {
          written_here.insert(tensor);
          TensorUse& use = mutable_use(tensor);
          (parts == &stage.cpu ? use.written_by_cpu : use.written_by_gpu) = placed.part;
          (parts == &stage.cpu ? use.of_cpu : use.of_gpu).extend(static_cast<int>(index));
        }
        const std::vector<int> read = analysis::tensors_read(op_of(model, placed));
        for (size_t i = 0; i < read.size(); ++i) {
          TensorUse& use = mutable_use(read[i]);
          (parts == &stage.cpu ? use.is_read_by_cpu : use.is_read_by_gpu) = true;
          (parts == &stage.cpu ? use.of_cpu : use.of_gpu).extend(static_cast<int>(index));
          if (written_here.count(read[i]) != 0) continue;
          use.is_published = true;
          extend(parts == &stage.cpu ? use.for_cpu : use.for_gpu,
                 read_by(model, placed, parts == &stage.cpu, i));
        }
      }
    }
  }
  for (const int tensor : outputs_) {
    mutable_use(tensor).is_read_by_cpu = true;
    mutable_use(tensor).is_published = true;
    mutable_use(tensor).for_cpu = whole_tensor(model.tensor(tensor));
    mutable_use(tensor).of_cpu.extend(static_cast<int>(stages_.size()) - 1);
  }
}

void Schedule::find_transfers(const Model& model) {
  std::vector<int> stage_of(model.tensors.size(), 0);  // that writes it; what comes in: stage 0
  std::vector<bool> is_with_cpu(model.tensors.size(), false);
  const auto at = [](int tensor) { return static_cast<size_t>(tensor); };
  /// Whether some of what is read of a tensor is the other's, written in an earlier stage.
  const auto is_others = [&](int tensor, size_t stage, const std::optional<OutputPart>& written,
                             const OutputPart& read) {
    return use(tensor).is_published && stage_of[at(tensor)] < static_cast<int>(stage) &&
           common(written, read);
  };
  const auto cpu_reads = [&](int tensor, size_t stage, const OutputPart& read) {
    const TensorUse& use = this->use(tensor);
    if (!is_others(tensor, stage, use.written_by_gpu, read)) return;
    stages_[stage].cpu_waits = true;
    if (is_with_cpu[at(tensor)]) return;
    is_with_cpu[at(tensor)] = true;
    stages_[stage].to_cpu.push_back({tensor, *common(use.written_by_gpu, use.for_cpu)});
  };
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    for (const auto* parts : {&stage.cpu, &stage.gpu})
      for (const PlacedPart& placed : *parts)
        for (const int tensor : analysis::tensors_written(op_of(model, placed)))
          stage_of[at(tensor)] = static_cast<int>(i);
    for (const PlacedPart& placed : stage.cpu) {
      const std::vector<int> read = analysis::tensors_read(op_of(model, placed));
      for (size_t k = 0; k < read.size(); ++k) cpu_reads(read[k], i, read_by(model, placed, true, k));
    }
    for (const PlacedPart& placed : stage.gpu) {
      const std::vector<int> read = analysis::tensors_read(op_of(model, placed));
      for (size_t k = 0; k < read.size(); ++k)
        if (is_others(read[k], i, use(read[k]).written_by_cpu, read_by(model, placed, false, k)))
          stage.gpu_waits_for = std::max(stage.gpu_waits_for, stage_of[at(read[k])]);
    }
  }
  for (const int tensor : outputs_) cpu_reads(tensor, stages_.size() - 1, use(tensor).for_cpu);
  for (size_t tensor = 0; tensor < uses_.size(); ++tensor) {
    const TensorUse& use = uses_[tensor];
    const std::optional<OutputPart> part = common(use.written_by_cpu, use.for_gpu);
    if (use.is_published && part)
      stages_[static_cast<size_t>(stage_of[tensor])].to_gpu.push_back({static_cast<int>(tensor), *part});
  }
}

}  // namespace phonebit::engine::coexec
