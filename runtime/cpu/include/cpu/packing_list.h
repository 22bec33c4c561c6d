// Weights on their way into the kernels' layout: the slow part of loading, done for all layers at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/memory_budget.h"
#include "memory/aligned_buffer.h"
#include "threads/thread_pool.h"
#include "types/cancellation.h"

namespace phonebit::engine::cpu {

/// Weights in the kernels' layout, in the order in which layers are built.
using PackedWeights = std::vector<std::shared_ptr<const memory::AlignedBuffer>>;

/// Layers add one job for each array of weights while they are built; run() does them on all threads. What
/// jobs read besides the file is kept here until then.
class PackingList {
 public:
  /// `packed`: the weights of another build of the same layers, which take them as they are; null: none.
  explicit PackingList(const PackedWeights* packed = nullptr) : packed_(packed) {}

  /// Memory for an array of weights. Throws Error when it is short.
  std::shared_ptr<const memory::AlignedBuffer> memory(analysis::MemoryBudget& budget, size_t bytes) {
    if (packed_ != nullptr) return (*packed_)[taken_++];
    budget.take(bytes, "packed weights");
    own_.push_back(std::make_shared<memory::AlignedBuffer>(bytes, "packed weights"));
    return own_.back();
  }

  /// `job` must not throw, and must be independent of all others.
  void add(std::function<void()> job) {
    if (packed_ == nullptr) jobs_.push_back(std::move(job));
  }

  /// Null for an empty list.
  const int32_t* keep(std::vector<int32_t> thresholds) {
    thresholds_.push_back(std::move(thresholds));
    return thresholds_.back().empty() ? nullptr : thresholds_.back().data();
  }
  float* keep(memory::AlignedBuffer weights) {
    weights_.push_back(std::move(weights));
    return weights_.back().as<float>();
  }

  /// Throws Error(cancelled) between jobs where the interrupt hook says so. Returns all weights.
  PackedWeights run(threads::ThreadPool& pool) {
    const Cancellation cancellation;
    pool.parallel_for(static_cast<int>(jobs_.size()), [&](int part) {
      if (!cancellation.is_requested()) jobs_[static_cast<size_t>(part)]();
    });
    cancellation.check();
    return std::move(own_);
  }

 private:
  const PackedWeights* packed_;
  size_t taken_ = 0;
  PackedWeights own_;
  std::vector<std::function<void()>> jobs_;
  // What their elements hold stays where it is when they move.
  std::vector<std::vector<int32_t>> thresholds_;
  std::vector<memory::AlignedBuffer> weights_;
};

}  // namespace phonebit::engine::cpu
