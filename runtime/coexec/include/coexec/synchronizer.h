// How the two processors wait for each other.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "gpu/device.h"
#include "gpu/program_cache.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// Points in the GPU's in-order queue at which a processor waits for the other. Stages are counted over one inference.
class Synchronizer {
 public:
  virtual ~Synchronizer() = default;
  Synchronizer() = default;
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  /// Begins an inference of so many stages whose commands go to `queue`; everything of the one before has been
  /// waited for.
  virtual void begin(int stages, gpu::Queue& queue) = 0;
  /// Enqueues: when all before this has run, the CPU may begin `cpu_stage` (-1: no such stage); what follows
  /// begins when the CPU has finished `awaited` (-1: at once). `events` are kept until the next inference and
  /// receive more. `is_last`: whether the last of them is that of the last command. Returns what the CPU is to
  /// wait for, null where that is no event.
  virtual const gpu::Event* enqueue_point(int cpu_stage, int awaited, gpu::Events& events, bool is_last) = 0;
  /// Whether points can be enqueued before the CPU has finished what they wait for.
  virtual bool can_run_ahead() const = 0;
  /// On the CPU: waits at its point until it may begin a stage. Throws Error(device).
  virtual void wait_for_gpu(int cpu_stage, const gpu::Event* point) = 0;
  /// On the CPU: it has finished a stage.
  virtual void finish_cpu(int stage) = 0;
  /// Lets everything run that waits for the CPU, after a failure. Must not throw.
  virtual void release() noexcept = 0;
};

/// `limit`: how long polling may take. Throws Error(device) where the device lacks what `kind` needs.
std::unique_ptr<Synchronizer> make_synchronizer(Synchronization kind, gpu::Device& device,
                                                gpu::ProgramCache& programs, std::chrono::milliseconds limit);

}  // namespace phonebit::engine::coexec
