// Android's performance hint session: the system learns how long inferences take and shall take, and raises
// clocks before frames are late.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>

#include "threads/thread_pool.h"

namespace phonebit::engine::threads {

/// A session over the threads of a pool and its caller. Does nothing where the system has no such sessions:
/// Android before version 13 (API 33), devices without support, other systems. One caller at a time.
class PerformanceHint {
 public:
  /// `library` has the functions; it is looked for as dlopen does.
  explicit PerformanceHint(const char* library = "libandroid.so");
  ~PerformanceHint();
  PerformanceHint(const PerformanceHint&) = delete;
  PerformanceHint& operator=(const PerformanceHint&) = delete;

  /// The calling thread and the pool's have worked for so long on one image. The first report, and one from
  /// another thread, opens a session (milliseconds; allocates).
  void report(const ThreadPool& pool, std::chrono::nanoseconds duration);

 private:
  struct Functions;
  void open_session(const ThreadPool& pool, int caller);
  void close_session();

  std::unique_ptr<Functions> functions_;  // null: this system has none
  void* session_ = nullptr;
  int caller_ = 0;  // the thread that the session was last asked for
  int64_t fastest_ns_ = std::numeric_limits<int64_t>::max();
};

}  // namespace phonebit::engine::threads
