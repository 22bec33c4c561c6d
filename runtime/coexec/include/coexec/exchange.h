// How what one processor wrote reaches the other: copied, mapped, or simply there.
#pragma once

#include <memory>

#include "coexec/tensor_views.h"

namespace phonebit::engine::coexec {

/// Commands for one in-order queue, and what the CPU has to do itself. For stage t the queue holds, in this
/// order: for_cpu(t), the point from which the CPU may run stage t, [the point at which the CPU has run stage
/// p], from_cpu(p), the GPU's part of stage t.
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Before the CPU may begin the stage.
  virtual void enqueue_for_cpu(const Stage& stage, gpu::Queue& queue) = 0;
  /// After the CPU has finished the stage.
  virtual void enqueue_from_cpu(const Stage& stage, gpu::Queue& queue) = 0;
  /// On the CPU, when it begins and has finished its parts of the stage.
  virtual void begin_cpu(const Stage&) {}
  virtual void end_cpu(const Stage&) {}

  /// Whether for_cpu of the stage holds commands that the CPU must wait for.
  virtual bool has_commands_for_cpu(const Stage&) const { return false; }
  /// Whether the GPU's work may be in the queue before the CPU has finished what it waits for. Not after
  /// commands of from_cpu: when they are enqueued, the host must have written what they read or unmap.
  virtual bool can_run_ahead() const { return false; }
};

/// All references outlive it. `schedule`'s stages are those that come back in the calls.
std::unique_ptr<Exchange> make_exchange(Sharing sharing, const Schedule& schedule, TensorViews& views);

}  // namespace phonebit::engine::coexec
