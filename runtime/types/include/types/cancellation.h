// How an inference learns that it was cancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "types/fail.h"
#include "types/interrupt.h"

namespace phonebit::engine {

/// Cancellations of one network, counted. A count, unlike a flag, needs nobody to reset it: no request is
/// lost, and none reaches passes that come later.
using CancelCount = std::atomic<uint64_t>;

/// What one inference sees of them, and of an interrupt of the thread that asked for it. Made when the inference is
/// asked for, before it waits for its turn. Any thread may ask.
class Cancellation {
 public:
  explicit Cancellation(const CancelCount& count) : count_(count), before_(count.load()) {}
  /// Of work that nobody cancels by a count.
  Cancellation() : Cancellation(never_) {}

  /// Whether there was a request since this was made. Takes some nanoseconds, unless the interrupt hook is
  /// asked, which happens every kHookInterval at most.
  bool is_requested() const {
    return count_.load(std::memory_order_relaxed) != before_ ||
           is_interrupted_.load(std::memory_order_relaxed) || ask_hook();
  }

  /// Throws Error(cancelled) if there was.
  void check() const {
    if (is_requested()) fail(ErrorCode::cancelled, "the pass was cancelled; its results are undefined");
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kHookInterval{25};
  static inline const CancelCount never_{0};

  bool ask_hook() const {
    bool (*const hook)() = interrupt_hook.load(std::memory_order_relaxed);
    if (hook == nullptr || std::this_thread::get_id() != caller_) return false;
    if (Clock::now() - last_asked_ < kHookInterval) return false;
    if (hook()) is_interrupted_.store(true);
    last_asked_ = Clock::now();
    return is_interrupted_.load();
  }

  const CancelCount& count_;
  const uint64_t before_;
  const std::thread::id caller_ = std::this_thread::get_id();
  mutable Clock::time_point last_asked_ = Clock::now();  // by the caller only
  mutable std::atomic<bool> is_interrupted_{false};
};

}  // namespace phonebit::engine
