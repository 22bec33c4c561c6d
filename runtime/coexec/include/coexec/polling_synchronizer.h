// Meeting by flags in shared virtual memory: Fine-Grained Co-Execution, section 4.
#pragma once

#include <atomic>

#include "coexec/synchronizer.h"
#include "opencl/program_cache.h"
#include "opencl/svm.h"

namespace phonebit::engine::coexec {

/// A kernel of one work-item tells where the GPU is and waits for the CPU, which does the same: no command
/// ends, and none is enqueued, where they meet. Both waits have a limit.
class PollingSynchronizer final : public Synchronizer {
 public:
  PollingSynchronizer(opencl::Context& context, opencl::ProgramCache& programs,
                      std::chrono::milliseconds limit);

  void begin(int stages) override;
  void enqueue_point(int cpu_stage, int awaited) override;
  bool can_run_ahead() const override { return true; }
  void wait_for_gpu(int cpu_stage) override;
  void finish_cpu(int stage) override;
  void release() noexcept override;

 private:
  /// What the kernel shares with us, as bnn_kernels/coexec/poll_flags.cl lays it out.
  struct Flags {
    alignas(64) std::atomic<int32_t> gpu;
    alignas(64) std::atomic<int32_t> cpu;
    alignas(64) std::atomic<int32_t> is_timed_out;
  };

  Flags& flags() const { return *static_cast<Flags*>(memory_.data()); }
  void reset_flags();
  void enqueue(int reached, int awaited, int spins);
  /// So many spins of the kernel take about the limit.
  int calibrated_spins();

  opencl::Context& context_;
  opencl::SvmMemory memory_;
  Handle<cl_kernel> kernel_;
  std::chrono::milliseconds limit_;
  int spins_;
  int base_ = 0;     // flags count stages over all passes: stage s of this pass is base_ + s
  int stages_ = 0;   // of this pass
  int reached_ = 0;  // what the GPU's flag will be when it has run what is enqueued
};

}  // namespace phonebit::engine::coexec
