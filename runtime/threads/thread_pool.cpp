#include "threads/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "threads/affinity.h"
#include "threads/floating_point_scope.h"
#include "threads/fork_generation.h"
#include "types/fail.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace phonebit::engine::threads {
namespace {

using Clock = std::chrono::steady_clock;

/// Pauses between two looks at the clock (a pause takes 10 to 140 cycles).
constexpr int kPausesPerClock = 32;
/// Pauses after which a waiting caller offers its core to others: the worker that it waits for may need it.
constexpr int kPausesBeforeYield = 4096;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

uint32_t parts_left(uint64_t state) { return static_cast<uint32_t>(state); }

/// Of `count` runs of [0, parts), the first part of number `run`. Run 0, the caller's, is one of the longest.
int run_begin(int parts, size_t run, size_t count) {
  return static_cast<int>((static_cast<uint64_t>(parts) * run + count - 1) / count);
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::vector<int> cores, std::chrono::microseconds spin_time)
    : bedroom_(std::make_unique<Bedroom>()),
      runs_(static_cast<size_t>(std::max(threads, 1))),
      worker_numbers_(runs_.size() - 1),
      cores_(std::move(cores)),
      spin_time_(spin_time),
      processors_(cores_.empty() ? allowed_processors() : cores_),
      fork_generation_(fork_generation()) {
  const AffinityScope inherited(cores_);  // by the workers
  if (!inherited.is_in_force())
    fail(ErrorCode::device,
         "the system refuses to keep threads on chosen processors; leave the choice to it");
  workers_.reserve(worker_numbers_.size());
  try {
    for (size_t i = 0; i < worker_numbers_.size(); ++i) workers_.emplace_back([this, i] { worker_main(i); });
  } catch (const std::system_error& error) {
    stop();
    fail(ErrorCode::device, "cannot start %d threads: %s; ask for fewer", threads, error.what());
  } catch (...) {  // no memory: those that run must not be left
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  if (fork_generation() != fork_generation_) {
    // The workers live in the parent process only. To a condition variable they still seem to wait, and
    // destroying it would wait for them in turn, so the child leaves it alone.
    for (std::thread& worker : workers_) worker.detach();
    static_cast<void>(bedroom_.release());
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(bedroom_->mutex);
    is_stopping_.store(true);
  }
  bedroom_->condition.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::vector<int> ThreadPool::worker_numbers() const {
  std::vector<int> result;
  for (const std::atomic<int>& number : worker_numbers_) result.push_back(number.load());
  return result;
}

void ThreadPool::parallel_for(int parts, Function function, void* context) {
  if (parts <= 0) return;
  const bool is_alone = parts == 1 || workers_.empty() || fork_generation() != fork_generation_;
  if (is_alone || is_busy_.exchange(true, std::memory_order_acquire)) {
    for (int part = 0; part < parts; ++part) function(context, part);
    return;
  }
  function_ = function;
  context_ = context;
  parts_ = parts;
  done_.store(0, std::memory_order_relaxed);
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  for (size_t run = 0; run < runs_.size(); ++run) {
    const int count = run_begin(parts, run + 1, runs_.size()) - run_begin(parts, run, runs_.size());
    runs_[run].state.store(uint64_t{epoch} << 32 | static_cast<uint32_t>(count), std::memory_order_release);
  }
  // Sequentially consistent with the worker's "count me as asleep, then look once more": one of the two sees
  // the other.
  epoch_.store(epoch);
  if (sleepers_.load() > 0) {
    keep_clear_of_caller();
    {
      const std::lock_guard<std::mutex> lock(bedroom_->mutex);
    }
    bedroom_->condition.notify_all();
  }
  run_parts(0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != parts; ++spins) {
    if (spins < kPausesBeforeYield)
      pause();
    else
      std::this_thread::yield();
  }
  is_busy_.store(false, std::memory_order_release);
}

/// Parts of the thread's own run, then of those after it.
void ThreadPool::run_parts(size_t thread) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    const size_t run = (thread + i) % runs_.size();
    std::atomic<uint64_t>& shared = runs_[run].state;
    uint64_t state = shared.load(std::memory_order_acquire);
    while (parts_left(state) > 0) {
      if (!shared.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      function_(context_, run_begin(parts_, run + 1, runs_.size()) - static_cast<int>(parts_left(state)));
      done_.fetch_add(1, std::memory_order_release);
      state = shared.load(std::memory_order_acquire);
    }
  }
}

/// Linux likes to wake a worker on the processor of its waker. There it waits until the caller, who computes
/// and then spins for it, has used up a time slice: milliseconds, for a loop of microseconds. So workers that
/// are about to wake may use every processor but the caller's. It costs nothing while the caller stays where
/// it is.
void ThreadPool::keep_clear_of_caller() {
#if defined(__linux__)
  const int here = ::sched_getcpu();
  if (here < 0 || here == caller_processor_) return;
  cpu_set_t others;
  CPU_ZERO(&others);
  for (const int processor : processors_) {
    if (processor != here) CPU_SET(static_cast<size_t>(processor), &others);
  }
  if (CPU_COUNT(&others) == 0) return;
  caller_processor_ = here;
  for (const std::atomic<int>& number : worker_numbers_) {
    const int worker = number.load();
    // Not started yet: it is told next time.
    if (worker == 0) caller_processor_ = -1;
    // Refused (a sandbox, a processor that is gone): workers stay where they are, which is only slower.
    if (worker > 0) static_cast<void>(::sched_setaffinity(worker, sizeof others, &others));
  }
#endif
}

void ThreadPool::worker_main(size_t index) {
  const FloatingPointScope rounding;  // not what the thread inherited
  worker_numbers_[index].store(this_thread_number());
  uint32_t epoch = 0;
  while (wait_for_work(epoch)) {
    epoch = epoch_.load(std::memory_order_acquire);
    run_parts(index + 1);
  }
}

/// Returns true when a loop newer than `finished_epoch` has started, false when the pool stops.
bool ThreadPool::wait_for_work(uint32_t finished_epoch) {
  const auto is_ready = [&] { return epoch_.load() != finished_epoch || is_stopping_.load(); };
  const Clock::time_point deadline = Clock::now() + spin_time_;
  while (!is_stopping_.load(std::memory_order_relaxed) && Clock::now() < deadline) {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (epoch_.load(std::memory_order_acquire) != finished_epoch) return true;
      pause();
    }
  }

  std::unique_lock<std::mutex> lock(bedroom_->mutex);
  sleepers_.fetch_add(1);
  bedroom_->condition.wait(lock, is_ready);
  sleepers_.fetch_sub(1);
  return !is_stopping_.load();
}

}  // namespace phonebit::engine::threads
