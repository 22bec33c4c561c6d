// A plan made executable: which processor waits for which, and what is transferred.
#pragma once

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "analysis/op_part.h"
#include "loader/model.h"
#include "types/plan.h"

namespace phonebit::engine::coexec {

struct PlacedPart {
  size_t op;
  OutputPart part;
};

/// A part of a tensor that one processor wrote and the other one reads. Only those rows and channels are
/// transferred that some later stage reads: of maps that are cut alike, what windows reach over the cut.
struct DataTransfer {
  int tensor;
  OutputPart part;
};

/// What both processors do between two points where one may wait for the other.
struct Stage {
  std::vector<PlacedPart> cpu, gpu;
  /// What the CPU reads in this stage for the first time and the GPU has written before it.
  std::vector<DataTransfer> to_cpu;
  /// What the CPU writes in this stage and the GPU reads in a later one.
  std::vector<DataTransfer> to_gpu;
  /// It reads what the GPU has written before: the CPU begins when the GPU has finished all stages before.
  bool cpu_waits = false;
  /// The GPU begins when the CPU has finished that stage, and all before it; -1: at once.
  int gpu_waits_for = -1;
};

/// From the first to the last.
struct StageSpan {
  int first = INT_MAX, last = -1;

  void extend(int stage) { extend(StageSpan{stage, stage}); }
  void extend(const StageSpan& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

/// Who wrote and reads a tensor. Parts as planned; absent: the processor writes none of it.
struct TensorUse {
  std::optional<OutputPart> written_by_cpu, written_by_gpu;
  bool is_read_by_cpu = false, is_read_by_gpu = false;
  /// Stages in which a processor writes or reads it.
  StageSpan of_cpu, of_gpu;
  /// What later stages read, from the first row and channel to after the last.
  OutputPart for_cpu{INT_MAX, 0, INT_MAX, 0}, for_gpu = for_cpu;
  /// Whether a later stage, or the caller, reads it. Others are private to their writers.
  bool is_published = false;

  bool is_used_by_cpu() const { return written_by_cpu.has_value() || is_read_by_cpu; }
  bool is_used_by_gpu() const { return written_by_gpu.has_value() || is_read_by_gpu; }
};

/// In stage 0 the CPU takes in what nothing in the schedule writes; in the last stage it gives out results.
class Schedule {
 public:
  /// All layers of a model as `plan` says, which was checked (analysis/plan_check.h).
  Schedule(const loader::Model& model, const ExecutionPlan& plan);

  /// Layer `op` alone, `repeats` times, each time as if it read what both processors have just written and
  /// both read what it writes: what a layer costs inside a network. Absent parts are empty.
  Schedule(const loader::Model& model, size_t op, const std::optional<OutputPart>& cpu,
           const std::optional<OutputPart>& gpu, int repeats);

  const std::vector<Stage>& stages() const { return stages_; }
  /// Of the stages from `from` on, the one after the last that belongs in the GPU's queue when the CPU begins
  /// stage `index`. Enqueueing takes the CPU microseconds per kernel, so not the rest of the network, but what
  /// the GPU can begin meanwhile; `runs_ahead`: and what it begins when the CPU has finished this stage, so
  /// that it goes on at once, and the stage after that, so that the queue is never empty: drivers then enter a
  /// low-power state.
  size_t end_of_queue(size_t from, size_t index, bool runs_ahead) const;
  const TensorUse& use(int tensor) const { return uses_[static_cast<size_t>(tensor)]; }
  /// Tensors that come in and go out.
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }

 private:
  TensorUse& mutable_use(int tensor) { return uses_[static_cast<size_t>(tensor)]; }
  void find_uses(const loader::Model& model);
  void find_transfers(const loader::Model& model);

  std::vector<Stage> stages_;
  std::vector<TensorUse> uses_;
  std::vector<int> inputs_, outputs_;
};

}  // namespace phonebit::engine::coexec
