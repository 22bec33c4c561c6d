#include "threads/fork_generation.h"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace phonebit::engine::threads {
namespace {

std::atomic<unsigned> g_fork_generation{0};

}  // namespace

unsigned fork_generation() {
#if defined(__unix__) || defined(__APPLE__)
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { g_fork_generation.fetch_add(1); });
  static_cast<void>(registered);
#endif
  return g_fork_generation.load(std::memory_order_relaxed);
}

}  // namespace phonebit::engine::threads
