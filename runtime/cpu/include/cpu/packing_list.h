// Weights on their way into the kernels' layout: the slow part of loading, done for all layers at once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/memory_budget.h"
#include "memory/aligned_buffer.h"
#include "threads/thread_pool.h"

namespace phonebit::engine::cpu {

/// Weights in the kernels' layout, in the order in which layers are built.
using PackedWeights = std::vector<memory::AlignedBuffer>;

/// Layers add one job for each array of weights while they are built; run() does them on all threads. What
/// jobs read besides the file is kept here until then.
class PackingList {
 public:
  /// `packed`: the weights of another build of the same layers, which take them as they are; null: none.
  explicit PackingList(const PackedWeights* packed = nullptr) : packed_(packed) {}

  /// Memory for an array of weights. Throws Error when it is short.
  std::byte* memory(analysis::MemoryBudget& budget, size_t bytes);

  /// `job` must not throw, and must be independent of all others.
  void add(std::function<void()> job);

  /// Null for an empty list.
  const int32_t* keep(std::vector<int32_t> thresholds);
  float* keep(memory::AlignedBuffer weights);

  /// A layer has a kernel for many threads, whose weights are not those of one thread's kernel.
  void set_for_many_threads() { is_for_many_threads_ = true; }
  bool is_for_many_threads() const { return is_for_many_threads_; }

  /// Throws Error(cancelled) between jobs where the interrupt hook says so. Returns all weights, which layers read.
  PackedWeights run(threads::ThreadPool& pool);

 private:
  const PackedWeights* packed_;
  size_t taken_ = 0;
  bool is_for_many_threads_ = false;
  PackedWeights own_;
  std::vector<std::function<void()>> jobs_;
  // What their elements hold stays where it is when they move.
  std::vector<std::vector<int32_t>> thresholds_;
  std::vector<memory::AlignedBuffer> weights_;
};

}  // namespace phonebit::engine::cpu
