#include "cpu/packing_list.h"

#include <utility>

#include "types/cancellation.h"

namespace phonebit::engine::cpu {

std::byte* PackingList::memory(analysis::MemoryBudget& budget, size_t bytes) {
  if (packed_ != nullptr) return (*packed_)[taken_++].data();
  budget.take(bytes, "packed weights");
  own_.emplace_back(bytes, "packed weights");
  return own_.back().data();
}

void PackingList::add(std::function<void()> job) {
  if (packed_ == nullptr) jobs_.push_back(std::move(job));
}

const int32_t* PackingList::keep(std::vector<int32_t> thresholds) {
  thresholds_.push_back(std::move(thresholds));
  return thresholds_.back().empty() ? nullptr : thresholds_.back().data();
}

float* PackingList::keep(memory::AlignedBuffer weights) {
  weights_.push_back(std::move(weights));
  return weights_.back().as<float>();
}

PackedWeights PackingList::run(threads::ThreadPool& pool) {
  const Cancellation cancellation;
  pool.parallel_for(static_cast<int>(jobs_.size()), [&](int part) {
    if (!cancellation.is_requested()) jobs_[static_cast<size_t>(part)]();
  });
  cancellation.check();
  return std::move(own_);
}

}  // namespace phonebit::engine::cpu
