// The thread pool: every part runs once, whatever calls it, and starting a loop is cheap.
// PHONEBIT_TEST_LOOPS says how many loops.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "doctest_strings.h"
#include "parameters.h"
#include "threads/affinity.h"
#include "threads/thread_pool.h"

namespace {

using namespace phonebit::engine;
using threads::ThreadPool;
using Clock = std::chrono::steady_clock;

/// One loop that counts how often each part runs; true if that is once for each.
bool runs_each_part_once(ThreadPool& pool, int parts) {
  std::vector<int> count(static_cast<size_t>(parts),
                         0);  // plain ints: a second run of a part would be a data race
  pool.parallel_for(parts, [&](int part) { ++count[static_cast<size_t>(part)]; });
  return std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
}

int loops() { return static_cast<int>(parameter("PHONEBIT_TEST_LOOPS", 20000)); }

TEST_CASE("each part runs once") {
  for (const int threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    ThreadPool pool(threads);
    std::mt19937 random(static_cast<unsigned>(threads));
    CHECK(pool.threads() == threads);
    bool is_right = true;
    for (int loop = 0; loop < loops() / (threads <= 2 ? 1 : 10); ++loop)
      is_right = runs_each_part_once(pool, static_cast<int>(random() % 40)) && is_right;
    CHECK(is_right);
  }
}

TEST_CASE("sleeping workers wake up") {
  ThreadPool pool(3);
  bool is_right = true;
  for (int loop = 0; loop < 200; ++loop) {
    // Around the time after which workers go to sleep, so that some loops start while they do.
    std::this_thread::sleep_for(std::chrono::microseconds(150 + loop));
    is_right = runs_each_part_once(pool, 7) && is_right;
  }
  CHECK_MESSAGE(is_right, "loops after a pause run each part once");
}

/// A worker that slept is not woken on its caller's processor, where it would wait for the caller.
TEST_CASE("woken workers leave the caller its processor") {
#if defined(__linux__)
  if (threads::available_processors() == 1) return;
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the worker sleeps
    const int before = sched_getcpu();
    std::atomic<int> begun{0};
    std::atomic<bool> may_share{false};
    pool.parallel_for(2, [&](int) {
      begun.fetch_add(1);
      while (begun.load() < 2) std::this_thread::yield();  // a part for each of the two
      cpu_set_t set;
      CPU_ZERO(&set);
      if (std::this_thread::get_id() == caller || sched_getaffinity(0, sizeof set, &set) != 0) return;
      may_share.store(CPU_ISSET(static_cast<size_t>(before), &set));
    });
    if (sched_getcpu() != before) continue;  // the system moved the caller meanwhile
    CHECK_FALSE_MESSAGE(may_share.load(), "a woken worker leaves the caller its processor");
  }
#endif
}

TEST_CASE("nested loops run") {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(10, [&](int) { pool.parallel_for(10, [&](int) { total.fetch_add(1); }); });
  CHECK(total.load() == 100);
}

TEST_CASE("concurrent callers do not mix") {
  ThreadPool pool(2);
  std::atomic<bool> is_right{true};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int loop = 0; loop < loops() / 20; ++loop) {
        if (!runs_each_part_once(pool, caller + loop % 5)) is_right.store(false);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_MESSAGE(is_right.load(), "loops from several threads run each part once");
}

/// A forked child has no workers; loops and the destructor must still work there.
TEST_CASE("a forked child runs loops") {
  for (const auto pause : {0, 20}) {  // workers still spin, or sleep
    CAPTURE(pause);
    auto* pool = new ThreadPool(3);
    runs_each_part_once(*pool, 9);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_right = runs_each_part_once(*pool, 9);
      delete pool;
      ::_exit(is_right ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0);
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    delete pool;
  }
}

/// Each part waits until all have begun, so that no thread can do another one's part: the time to reach every
/// worker and back. Told, not checked.
TEST_CASE("the latency of a loop") {
  // On fewer processors than threads the wait inside would measure the scheduler.
  const int threads = threads::available_processors();
  if (threads == 1) return;
  ThreadPool pool(threads);
  std::vector<double> samples;
  for (int i = 0; i < 5000; ++i) {
    std::atomic<int> begun{0};
    const auto begin = Clock::now();
    pool.parallel_for(threads, [&](int) {
      begun.fetch_add(1);
      while (begun.load() < threads) std::atomic_signal_fence(std::memory_order_seq_cst);
    });
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(samples.begin(), samples.end());
  MESSAGE("fork-join on ", threads, " threads: median ", samples[samples.size() / 2], " us, 90% ",
          samples[samples.size() * 9 / 10], " us");
}

}  // namespace
