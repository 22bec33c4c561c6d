// How a pass learns that it was cancelled.
#pragma once

#include <atomic>
#include <cstdint>

#include "types/fail.h"

namespace phonebit {

/// Cancellations of one network, counted. A count, unlike a flag, needs nobody to reset it: no request is
/// lost, and none reaches passes that come later.
using CancelCount = std::atomic<uint64_t>;

/// What one pass sees of them. Made when the pass is asked for, before it waits for its turn.
class Cancellation {
 public:
  explicit Cancellation(const CancelCount& count) : count_(count), before_(count.load()) {}
  /// Of work that nobody cancels.
  Cancellation() : Cancellation(never_) {}

  /// Throws Error(cancelled) if there was a request since this was made.
  void check() const {
    if (count_.load(std::memory_order_relaxed) != before_)
      fail(ErrorCode::cancelled, "the pass was cancelled; its results are undefined");
  }

 private:
  static inline const CancelCount never_{0};

  const CancelCount& count_;
  const uint64_t before_;
};

}  // namespace phonebit
