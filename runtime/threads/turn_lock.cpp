#include "threads/turn_lock.h"

#include "threads/fork_generation.h"
#include "types/fail.h"

namespace phonebit::engine::threads {

TurnLock::TurnLock() : generation_(fork_generation()) { mutex_.emplace(); }

void TurnLock::lock() {
  const unsigned generation = fork_generation();
  if (generation_.load(std::memory_order_acquire) != generation) enter_generation(generation);
  if (is_broken_.load(std::memory_order_relaxed))
    fail(
        ErrorCode::device,
        "this process was forked while another thread used the network; load the network again in the child, "
        "or fork while it rests");
  const std::thread::id here = std::this_thread::get_id();
  if (holder_.load(std::memory_order_relaxed) == here)  // only this thread writes this value
    fail(ErrorCode::device,
         "the network is computing in this thread; use it after that, not in a signal's handler");
  mutex_->lock();
  holder_.store(here, std::memory_order_relaxed);
  is_held_.store(true, std::memory_order_relaxed);
}

void TurnLock::unlock() {
  is_held_.store(false, std::memory_order_relaxed);
  holder_.store(std::thread::id(), std::memory_order_relaxed);
  mutex_->unlock();
}

void TurnLock::enter_generation(unsigned generation) {
  static std::mutex mutex;  // of the child's threads that come here at once
  const std::lock_guard<std::mutex> lock(mutex);
  if (generation_.load(std::memory_order_relaxed) == generation) return;
  if (is_held_.load(std::memory_order_relaxed)) is_broken_.store(true, std::memory_order_relaxed);
  mutex_.emplace();
  holder_.store(std::thread::id(), std::memory_order_relaxed);
  generation_.store(generation, std::memory_order_release);
}

}  // namespace phonebit::engine::threads
