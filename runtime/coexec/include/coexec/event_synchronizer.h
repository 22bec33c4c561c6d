// Meeting by OpenCL events: what every device has.
#pragma once

#include <vector>

#include "coexec/synchronizer.h"

namespace phonebit::engine::coexec {

/// The CPU waits for events of the GPU. For the GPU's waiting there are two ways: commands are enqueued only
/// when the CPU has done its part (the host decides), or they are enqueued early behind user events.
class EventSynchronizer final : public Synchronizer {
 public:
  EventSynchronizer(opencl::Context& context, bool uses_user_events);
  ~EventSynchronizer() override { release(); }

  void begin(int stages) override;
  void enqueue_point(int cpu_stage, int awaited) override;
  bool can_run_ahead() const override { return uses_user_events_; }
  void wait_for_gpu(int cpu_stage) override;
  void finish_cpu(int stage) override;
  void release() noexcept override;

 private:
  opencl::Context& context_;
  bool uses_user_events_;
  std::vector<Handle<cl_event>> gpu_events_;   // by the stage that the CPU may then begin
  std::vector<Handle<cl_event>> user_events_;  // by the CPU's stage
  int finished_ = -1;                          // stages that the CPU has finished
};

}  // namespace phonebit::engine::coexec
