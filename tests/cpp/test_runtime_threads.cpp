// The thread pool: every part runs once, whatever calls it, and starting a loop is cheap.
//
// Usage: test_runtime_threads [loops]. Prints the latency of a loop.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "threads/affinity.h"
#include "threads/thread_pool.h"

namespace {

using phonebit::engine::threads::ThreadPool;
using Clock = std::chrono::steady_clock;

int failures = 0;

void expect(bool condition, const char* claim) {
  if (condition) return;
  std::fprintf(stderr, "FAIL %s\n", claim);
  ++failures;
}

/// One loop that counts how often each part runs; true if that is once for each.
bool runs_each_part_once(ThreadPool& pool, int parts) {
  std::vector<int> count(static_cast<size_t>(parts),
                         0);  // plain ints: a second run of a part would be a data race
  pool.parallel_for(parts, [&](int part) { ++count[static_cast<size_t>(part)]; });
  return std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
}

void each_part_runs_once(int threads, int loops) {
  ThreadPool pool(threads);
  std::mt19937 random(static_cast<unsigned>(threads));
  bool is_right = pool.threads() == threads;
  for (int loop = 0; loop < loops; ++loop)
    is_right = runs_each_part_once(pool, static_cast<int>(random() % 40)) && is_right;
  expect(is_right, "each part runs once");
}

void sleeping_workers_wake_up() {
  ThreadPool pool(3);
  bool is_right = true;
  for (int loop = 0; loop < 200; ++loop) {
    // Around the time after which workers go to sleep, so that some loops start while they do.
    std::this_thread::sleep_for(std::chrono::microseconds(150 + loop));
    is_right = runs_each_part_once(pool, 7) && is_right;
  }
  expect(is_right, "loops after a pause run each part once");
}

/// A worker that slept is not woken on its caller's processor, where it would wait for the caller.
void woken_workers_leave_the_caller_its_processor() {
#if defined(__linux__)
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
    expect(!may_share.load(), "a woken worker leaves the caller its processor");
  }
#endif
}

void nested_loops_run() {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(10, [&](int) { pool.parallel_for(10, [&](int) { total.fetch_add(1); }); });
  expect(total.load() == 100, "a loop inside a loop runs each part once");
}

void concurrent_callers_do_not_mix(int loops) {
  ThreadPool pool(2);
  std::atomic<bool> is_right{true};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int loop = 0; loop < loops; ++loop) {
        if (!runs_each_part_once(pool, caller + loop % 5)) is_right.store(false);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  expect(is_right.load(), "loops from several threads run each part once");
}

/// A forked child has no workers; loops and the destructor must still work there.
void forked_child_runs(std::chrono::milliseconds pause) {
  auto* pool = new ThreadPool(3);
  runs_each_part_once(*pool, 9);
  std::this_thread::sleep_for(pause);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_right = runs_each_part_once(*pool, 9);
    delete pool;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  expect(child > 0 && ::waitpid(child, &status, 0) == child && status == 0, "loops run in a forked child");
  delete pool;
}

/// Each part waits until all have begun, so that no thread can do another one's part: the time to reach every
/// worker and back.
void print_latency(int threads) {
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
  std::printf("fork-join on %d threads: median %.2f us, 90%% %.2f us\n", threads, samples[samples.size() / 2],
              samples[samples.size() * 9 / 10]);
}

}  // namespace

int main(int argc, char** argv) {
  const int loops = argc > 1 ? std::atoi(argv[1]) : 20000;
  for (const int threads : {1, 2, 3, 8}) each_part_runs_once(threads, threads <= 2 ? loops : loops / 10);
  sleeping_workers_wake_up();
  if (phonebit::engine::threads::available_processors() > 1) woken_workers_leave_the_caller_its_processor();
  nested_loops_run();
  concurrent_callers_do_not_mix(loops / 20);
  forked_child_runs(std::chrono::milliseconds(0));   // workers still spin
  forked_child_runs(std::chrono::milliseconds(20));  // workers sleep
  // On fewer processors than threads the wait inside would measure the scheduler.
  const int processors = phonebit::engine::threads::available_processors();
  if (processors > 1) print_latency(processors);
  return failures == 0 ? 0 : 1;
}
