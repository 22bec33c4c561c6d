// A mutex that a fork cannot leave locked for ever.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

namespace phonebit::engine::threads {

/// What the mutex guards belongs to one thread at a time. Where another thread held it while the process
/// forked, that thread does not exist in the child, and left what it guards half-changed: there lock() throws
/// Error(device), and says so, in place of waiting for ever. Otherwise the child starts with an open lock.
/// So does lock() in the thread that holds it, as a signal's handler may call it.
class TurnLock {
 public:
  TurnLock();
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

  void lock();
  void unlock();

 private:
  void enter_generation(unsigned generation);

  std::optional<std::mutex> mutex_;   // made again in a child: waiters of its parent are part of its state
  std::atomic<bool> is_held_{false};  // set while the guarded may change
  std::atomic<std::thread::id> holder_{std::thread::id()};
  std::atomic<bool> is_broken_{false};  // by a fork during a hold
  std::atomic<unsigned> generation_;
};

}  // namespace phonebit::engine::threads
