#include "threads/thread_pool.h"

#include <chrono>
#include <system_error>

#include "fail.h"

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace phonebit::threads {
namespace {

using Clock = std::chrono::steady_clock;

/// How long an idle worker keeps spinning: longer than the serial stretches inside a network, so that workers
/// stay awake for one forward pass, and short enough not to burn a core between passes.
constexpr std::chrono::microseconds kSpinTime{200};
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

/// Counts forks of this process: a child has a copy of the pool, but not its threads.
std::atomic<unsigned> g_fork_generation{0};

unsigned fork_generation() {
#if defined(__unix__) || defined(__APPLE__)
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { g_fork_generation.fetch_add(1); });
  static_cast<void>(registered);
#endif
  return g_fork_generation.load(std::memory_order_relaxed);
}

uint64_t epoch_of(uint64_t state) { return state >> 32; }
uint32_t parts_left(uint64_t state) { return static_cast<uint32_t>(state); }

}  // namespace

int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

ThreadPool::ThreadPool(int threads)
    : bedroom_(std::make_unique<Bedroom>()), fork_generation_(fork_generation()) {
  workers_.reserve(static_cast<size_t>(threads > 1 ? threads - 1 : 0));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker_main(); });
  } catch (const std::system_error& error) {
    stop();
    fail(ErrorCode::device, "cannot start %d threads: %s; ask for fewer", threads, error.what());
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

void ThreadPool::parallel_for(int parts, Function function, void* context) {
  if (parts <= 0) return;
  const bool is_alone = parts == 1 || workers_.empty() || fork_generation() != fork_generation_;
  if (is_alone || is_busy_.exchange(true, std::memory_order_acquire)) {
    for (int part = 0; part < parts; ++part) function(context, part);
    return;
  }
  function_ = function;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t epoch = epoch_of(state_.load(std::memory_order_relaxed)) + 1;
  // Sequentially consistent with the worker's "count me as asleep, then look once more": one of the two sees
  // the other.
  state_.store(epoch << 32 | static_cast<uint32_t>(parts));
  if (sleepers_.load() > 0) {
    {
      const std::lock_guard<std::mutex> lock(bedroom_->mutex);
    }
    bedroom_->condition.notify_all();
  }
  while (run_one_part()) {
  }
  for (int spins = 0; done_.load(std::memory_order_acquire) != parts; ++spins) {
    if (spins < kPausesBeforeYield)
      pause();
    else
      std::this_thread::yield();
  }
  is_busy_.store(false, std::memory_order_release);
}

bool ThreadPool::run_one_part() {
  uint64_t state = state_.load(std::memory_order_acquire);
  do {
    if (parts_left(state) == 0) return false;
  } while (
      !state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  function_(context_, static_cast<int>(parts_left(state) - 1));
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void ThreadPool::worker_main() {
  uint64_t epoch = 0;
  while (wait_for_work(epoch)) {
    epoch = epoch_of(state_.load(std::memory_order_acquire));
    while (run_one_part()) {
    }
  }
}

/// Returns true when a loop newer than `finished_epoch` has started, false when the pool stops.
bool ThreadPool::wait_for_work(uint64_t finished_epoch) {
  const auto is_ready = [&] { return epoch_of(state_.load()) != finished_epoch || is_stopping_.load(); };
  const Clock::time_point deadline = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (epoch_of(state_.load(std::memory_order_acquire)) != finished_epoch) return true;
      pause();
    }
  } while (!is_stopping_.load(std::memory_order_relaxed) && Clock::now() < deadline);

  std::unique_lock<std::mutex> lock(bedroom_->mutex);
  sleepers_.fetch_add(1);
  bedroom_->condition.wait(lock, is_ready);
  sleepers_.fetch_sub(1);
  return !is_stopping_.load();
}

}  // namespace phonebit::threads
