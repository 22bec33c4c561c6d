// Runs a schedule: the GPU's work of some stages is enqueued, the CPU computes meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "coexec/exchange.h"
#include "coexec/synchronizer.h"
#include "cpu/layer.h"
#include "gpu/layer_set.h"
#include "threads/thread_pool.h"
#include "types/cancellation.h"

namespace phonebit::engine::coexec {

/// What the executors of a network have in common. All of it outlives them.
struct Processors {
  const loader::Model& model;
  const cpu::Isa& isa;
  threads::ThreadPool& pool;
  std::shared_ptr<gpu::Device> device;
  gpu::ProgramCache& programs;
  const Options& options;
};

/// Microseconds of one inference, or of a measured layer.
struct Times {
  double total, cpu, gpu;
};

/// Layers of a schedule on both processors. Everything is allocated at construction. One caller at a time.
class Executor {
 public:
  /// Throws Error(device) when the device cannot, Error(format) when memory is short.
  Executor(const Processors& processors, Schedule schedule, Sharing sharing, Synchronization synchronization,
           Reuse reuse = Reuse::over_time);
  /// Waits for the queue: what a failed run has left in it uses this memory.
  ~Executor() { recover(); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// One image: a buffer for each of the schedule's inputs and outputs. After a cancellation the CPU skips
  /// what is left of its parts, and results are undefined.
  void run(const std::byte* const* inputs, std::byte* const* outputs, const Cancellation& cancellation);
  /// After run(), with Reuse::none: a tensor as the processors left it, from the parts that each of them wrote.
  void read(int tensor, std::byte* to);
  /// The same on a queue that keeps time, with the microseconds of each planned part, by op: both processors
  /// work at the same time, each by its own clock. Of an op in several stages the minimum counts. Fills `cpu`
  /// and `gpu`, zeros before. A part of the GPU begins when what was enqueued before it has ended, or when it
  /// was enqueued itself because the CPU had finished: the launch is included, waiting for the CPU is not.
  void run_timed(const std::byte* const* inputs, std::byte* const* outputs, const Cancellation& cancellation,
                 std::vector<double>& cpu, std::vector<double>& gpu);

  const Schedule& schedule() const { return schedule_; }
  /// "gpu: ... + cpu: ..." of an op; empty where the schedule does not have it.
  std::string kernel(size_t op) const;
  const gpu::LayerSet& gpu_layers() const { return gpu_layers_; }
  size_t activation_bytes() const { return views_.bytes(); }
  size_t scratch_bytes() const { return scratch_.size(); }
  size_t weight_bytes() const;

  /// Lets both go on after a failure, and waits for the queue.
  void recover() noexcept;

 private:
  struct CpuLayer {
    PlacedPart placed;
    std::unique_ptr<cpu::Layer> layer;
  };

  void make_cpu_layers();
  cpu::Layer* find_cpu_layer(const PlacedPart& placed) const;
  void bind_gpu_layers();
  /// A part in the queue that keeps time.
  struct TimedPart {
    size_t op;
    bool waits;         // for the CPU, before it
    size_t begin, end;  // of its events
  };
  /// What an inference that keeps time finds.
  struct PartClock {
    std::vector<double>& cpu_us;  // by op
    std::vector<TimedPart> gpu;   // in order
  };

  /// `clock` may be null.
  void run_schedule(const std::byte* const* inputs, std::byte* const* outputs,
                    const Cancellation& cancellation, PartClock* clock);
  void enqueue_stage(size_t index, PartClock* clock);
  void enqueue_from_cpu(int last);
  /// The CPU's part of a stage: its layers' parts, inputs and outputs.
  void run_cpu_stage(size_t index, const std::byte* const* inputs, std::byte* const* outputs,
                     const Cancellation& cancellation, PartClock* clock);

  Processors processors_;
  Schedule schedule_;
  analysis::MemoryBudget budget_;
  TensorViews views_;
  gpu::LayerSet gpu_layers_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Synchronizer> synchronizer_;
  bool runs_ahead_;  // whether work that waits for the CPU is enqueued before the CPU has finished
  std::vector<CpuLayer> cpu_layers_;
  std::vector<std::vector<cpu::Layer*>> cpu_work_;  // by stage
  cpu::PackedWeights packed_weights_;
  memory::AlignedBuffer scratch_;
  gpu::Queue* queue_;                      // of this inference
  gpu::Events events_;                     // of its kernels, where they are of use
  std::vector<const gpu::Event*> points_;  // by the stage before which the CPU waits for it
  int transferred_ = -1;                   // the last stage whose results from the CPU are in the queue
};

}  // namespace phonebit::engine::coexec
