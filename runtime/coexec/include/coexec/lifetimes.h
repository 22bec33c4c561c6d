// When the processors use a piece of memory in an inference, and which pieces can be one.
#pragma once

#include <algorithm>
#include <climits>
#include <vector>

#include "coexec/schedule.h"

namespace phonebit::engine::coexec {

/// When a processor does something: its layers of a stage come one after the other.
struct Moment {
  static constexpr int kBegin = 0, kEnd = INT_MAX;  ///< of `step`: before and after all layers

  int stage;
  int step = kBegin;  ///< 1: the stage's first layer of this processor

  bool operator<(const Moment& other) const {
    return stage < other.stage || (stage == other.stage && step < other.step);
  }
};

/// When a processor uses some memory for the first and for the last time. The GPU's queue counts as the GPU,
/// also where it copies or maps.
struct Lifetime {
  Moment first_cpu{INT_MAX}, last_cpu{-1};
  Moment first_gpu{INT_MAX}, last_gpu{-1};

  void by_cpu(Moment moment) {
    first_cpu = std::min(first_cpu, moment);
    last_cpu = std::max(last_cpu, moment);
  }
  void by_gpu(Moment moment) { by_gpu(moment, moment); }
  void by_gpu(Moment first, Moment last) {
    first_gpu = std::min(first_gpu, first);
    last_gpu = std::max(last_gpu, last);
  }
};

/// The processors run apart from each other: what one of them has used for the last time is not free for the
/// other one in the next stage, since that may be stages ahead. What is known to have happened is what a
/// processor has waited for, in whole stages, and what it has done itself.
class LifetimeOrder {
 public:
  explicit LifetimeOrder(const Schedule& schedule);

  /// Whether both can be one memory: all of one's uses come before all of the other's, in this inference
  /// and, as the next one begins anew, before that one.
  bool can_share(const Lifetime& a, const Lifetime& b) const {
    return is_over_at_end(a) && is_over_at_end(b) && (is_before(a, b) || is_before(b, a));
  }
  /// The stage before which the queue transfers what the CPU has written in `stage`; the number of stages:
  /// at the end.
  int stage_of_transfer(int stage) const;

 private:
  bool is_before(const Lifetime& a, const Lifetime& b) const;
  bool is_over_at_end(const Lifetime& a) const { return a.last_gpu.stage <= gpu_done_.back(); }

  std::vector<int> gpu_done_;  // by stage of the CPU: the last of the GPU that is over when it begins
  std::vector<int> cpu_done_;  // likewise by stage of the GPU
};

}  // namespace phonebit::engine::coexec
