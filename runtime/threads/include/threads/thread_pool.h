// Fork-join for loops of some microseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace phonebit::engine::threads {

/// A fixed set of workers; the calling thread is one of them. After a loop the workers spin for a while, so
/// that the next loop starts within a microsecond, and then sleep.
///
/// Thread i of n begins with the i-th of n equal runs of a loop's parts and helps others when it is done. So
/// the rows of a map that a layer writes are read in the next layer by the same thread, from its own cache,
/// and each thread reads the same weights in every inference.
///
/// parallel_for may be called from any thread. Only one loop is spread over the workers at a time: a nested
/// or concurrent call runs its parts in the calling thread, which is always correct and never blocks. It does
/// not allocate.
class ThreadPool {
 public:
  /// Work on one part; must not throw.
  using Function = void (*)(void* context, int part);

  /// How long an idle worker waits awake: longer than the serial stretches inside a network, so that workers
  /// stay awake for one inference, and short enough not to burn a core between inferences.
  static constexpr std::chrono::microseconds kSpinTime{200};

  /// `threads` counts the caller: threads - 1 workers are started. They stay on the processors `cores`; none:
  /// on those of the calling thread. They wait awake for `spin_time`, then sleep. Throws Error(device) when
  /// the system refuses.
  explicit ThreadPool(int threads, std::vector<int> cores = {},
                      std::chrono::microseconds spin_time = kSpinTime);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  /// Where the workers stay and callers should be, too (AffinityScope); none: anywhere.
  const std::vector<int>& cores() const { return cores_; }
  /// The system's numbers of the workers; 0 for one that has not begun. Allocates.
  std::vector<int> worker_numbers() const;

  /// Calls function(context, part) once for each part in [0, parts), in any order; returns when all are done
  /// and their effects are visible to the caller.
  void parallel_for(int parts, Function function, void* context);

  /// The same for any const object callable with an int; it is used in place.
  template <class Callable>
  void parallel_for(int parts, const Callable& callable) {
    const auto call = [](void* object, int part) { (*static_cast<const Callable*>(object))(part); };
    parallel_for(parts, call, const_cast<void*>(static_cast<const void*>(&callable)));
  }

 private:
  void worker_main(size_t index);
  void keep_clear_of_caller();
  void run_parts(size_t thread);
  bool wait_for_work(uint32_t finished_epoch);
  void stop();

  // The current loop. Its fields may be read only between taking a part and counting it as done: the loop
  // cannot end, and so they cannot change, before that part is done.
  Function function_ = nullptr;
  void* context_ = nullptr;
  int parts_ = 0;

  /// Where idle workers sleep.
  struct Bedroom {
    std::mutex mutex;
    std::condition_variable condition;
  };
  std::unique_ptr<Bedroom> bedroom_;

  // Written by different threads at high rate, hence one cache line each.
  /// A thread's run of parts: epoch (upper half: counts loops) and number of parts not yet taken (lower half).
  /// One compare-and-swap both proves that the loop is still running and takes a part of it.
  struct alignas(64) Run {
    std::atomic<uint64_t> state{0};
  };
  std::vector<Run> runs_;  ///< the caller's, then the workers'
  /// Of the last loop whose runs are all there.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> is_stopping_{false};

  std::vector<std::thread> workers_;
  std::vector<std::atomic<int>> worker_numbers_;
  std::vector<int> cores_;
  std::chrono::microseconds spin_time_;
  /// All that workers may use, and the one of them that they were last told to leave alone.
  std::vector<int> processors_;
  [[maybe_unused]] int caller_processor_ = -1;
  unsigned fork_generation_;
};

}  // namespace phonebit::engine::threads
