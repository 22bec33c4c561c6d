#include "threads/affinity.h"

#include <thread>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace phonebit::engine::threads {
namespace {

#if defined(__linux__)
cpu_set_t set_of(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(static_cast<size_t>(processor), &set);
  }
  return set;
}
#endif

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> processors;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) processors.push_back(i);
  }
#endif
  return processors;
}

int available_processors() {
  const size_t mine = allowed_processors().size();
  const unsigned count = mine > 0 ? static_cast<unsigned>(mine) : std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

#if defined(__linux__)

int this_thread_number() { return static_cast<int>(::syscall(SYS_gettid)); }

AffinityScope::AffinityScope(const std::vector<int>& processors) {
  if (processors.empty()) return;
  const cpu_set_t wanted = set_of(processors);
  const bool is_known = ::sched_getaffinity(0, sizeof before_, &before_) == 0;
  if (is_known && CPU_EQUAL(&wanted, &before_)) return;
  is_in_force_ = is_changed_ = is_known && ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

AffinityScope::~AffinityScope() {
  if (is_changed_) static_cast<void>(::sched_setaffinity(0, sizeof before_, &before_));
}

#else

int this_thread_number() { return 0; }
AffinityScope::AffinityScope(const std::vector<int>& processors) : is_in_force_(processors.empty()) {}
AffinityScope::~AffinityScope() = default;

#endif

}  // namespace phonebit::engine::threads
