// Weights on their way into the kernels' layout: the slow part of loading, done for all layers at once.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "memory/aligned_buffer.h"
#include "threads/thread_pool.h"
#include "types/cancellation.h"

namespace phonebit::engine::cpu {

/// Layers add one job for each array of weights while they are built; run() does them on all threads. What
/// jobs read besides the file is kept here until then.
class PackingList {
 public:
  /// `job` must not throw, and must be independent of all others.
  void add(std::function<void()> job) { jobs_.push_back(std::move(job)); }

  /// Null for an empty list.
  const int32_t* keep(std::vector<int32_t> thresholds) {
    thresholds_.push_back(std::move(thresholds));
    return thresholds_.back().empty() ? nullptr : thresholds_.back().data();
  }
  float* keep(memory::AlignedBuffer weights) {
    weights_.push_back(std::move(weights));
    return weights_.back().as<float>();
  }

  /// Throws Error(cancelled) between jobs where the interrupt hook says so.
  void run(threads::ThreadPool& pool) {
    const Cancellation cancellation;
    pool.parallel_for(static_cast<int>(jobs_.size()), [&](int part) {
      if (!cancellation.is_requested()) jobs_[static_cast<size_t>(part)]();
    });
    cancellation.check();
  }

 private:
  std::vector<std::function<void()>> jobs_;
  // What their elements hold stays where it is when they move.
  std::vector<std::vector<int32_t>> thresholds_;
  std::vector<memory::AlignedBuffer> weights_;
};

}  // namespace phonebit::engine::cpu
