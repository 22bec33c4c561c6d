// Which processors threads may run on.
#pragma once

#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace phonebit::engine::threads {

/// Numbers of the processors that the calling thread may run on, in order; none where the system does not
/// tell.
std::vector<int> allowed_processors();

/// Number of processors that the calling thread may run on, at least 1.
int available_processors();

/// The system's number of the calling thread; 0 where it has none.
int this_thread_number();

/// Keeps the calling thread, and threads that it starts, on some processors as long as it lives; then the
/// calling thread is again where it was. Does not allocate. Where the system refuses (an app in the
/// background has lost those processors), the thread stays where it is, which is only slower.
class AffinityScope {
 public:
  /// No processors: changes nothing.
  explicit AffinityScope(const std::vector<int>& processors);
  ~AffinityScope();
  /// Whether the thread is where it should be.
  bool is_in_force() const { return is_in_force_; }
  AffinityScope(const AffinityScope&) = delete;
  AffinityScope& operator=(const AffinityScope&) = delete;

 private:
#if defined(__linux__)
  cpu_set_t before_;
#endif
  [[maybe_unused]] bool is_changed_ = false;
  bool is_in_force_ = true;
};

}  // namespace phonebit::engine::threads
