// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020):
// place the largest buffer first, each into the tightest gap between the buffers that are already placed and
// live at the same time. Networks with a long residual chain pack better in order of time, so that order is
// tried as well.
#include "memory/arena_plan.h"

#include <algorithm>
#include <limits>

#include "memory/ascending.h"

namespace phonebit::engine::memory {
namespace {

size_t align_up(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool live_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// The tightest gap among `placed` (sorted by offset) that takes `bytes` during `buffer`'s life; else the
/// end.
size_t best_fit(const std::vector<Lifetime>& buffers, const ArenaPlan& plan,
                const std::vector<size_t>& placed, const Lifetime& buffer, size_t bytes) {
  size_t best_offset = 0;
  size_t best_gap = std::numeric_limits<size_t>::max();
  size_t end = 0;  // of everything before the gap at hand
  for (const size_t other : placed) {
    if (!live_together(buffer, buffers[other])) continue;
    const size_t begin = plan.offsets[other];
    if (begin >= end && begin - end >= bytes && begin - end < best_gap) {
      best_gap = begin - end;
      best_offset = end;
    }
    end = std::max(end, begin + align_up(buffers[other].bytes));
  }
  return best_gap == std::numeric_limits<size_t>::max() ? end : best_offset;
}

ArenaPlan place_in_order(const std::vector<Lifetime>& buffers, const std::vector<size_t>& order) {
  ArenaPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> placed;  // sorted by offset
  placed.reserve(buffers.size());
  for (const size_t index : order) {
    const size_t bytes = align_up(buffers[index].bytes);
    const size_t offset = best_fit(buffers, plan, placed, buffers[index], bytes);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto by_offset = [&](size_t value, size_t other) { return value < plan.offsets[other]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, by_offset), index);
  }
  return plan;
}

size_t lower_bound(const std::vector<Lifetime>& buffers) {
  if (buffers.empty()) return 0;
  int last = 0;
  for (const Lifetime& buffer : buffers) last = std::max(last, buffer.last);
  // Bytes that come to life minus bytes that died before each step; unsigned arithmetic wraps back
  // consistently.
  std::vector<size_t> change(static_cast<size_t>(last) + 2, 0);
  for (const Lifetime& buffer : buffers) {
    change[static_cast<size_t>(buffer.first)] += align_up(buffer.bytes);
    change[static_cast<size_t>(buffer.last) + 1] -= align_up(buffer.bytes);
  }
  size_t live = 0;
  size_t most = 0;
  for (const size_t step : change) {
    live += step;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<Lifetime>& buffers) {
  const size_t bound = lower_bound(buffers);
  std::vector<uint64_t> keys;
  keys.reserve(buffers.size());
  for (const Lifetime& buffer : buffers) keys.push_back(~uint64_t{buffer.bytes});
  const std::vector<size_t> by_size = ascending(keys);
  ArenaPlan best = place_in_order(buffers, by_size);
  if (best.bytes > bound) {
    // Of those that begin together, the largest first.
    keys.clear();
    for (const size_t index : by_size) keys.push_back(static_cast<uint64_t>(buffers[index].first));
    std::vector<size_t> order;
    order.reserve(keys.size());
    for (const size_t place : ascending(keys)) order.push_back(by_size[place]);
    ArenaPlan by_time = place_in_order(buffers, order);
    if (by_time.bytes < best.bytes) best = std::move(by_time);
  }
  best.lower_bound_bytes = bound;
  return best;
}

bool verify_arena(const std::vector<Lifetime>& buffers, const ArenaPlan& plan, int conflict[2]) {
  const auto report = [&](size_t a, size_t b) {
    conflict[0] = static_cast<int>(a);
    conflict[1] = static_cast<int>(b);
    return false;
  };
  if (plan.offsets.size() != buffers.size()) return report(0, 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const bool is_inside = plan.offsets[i] <= plan.bytes && buffers[i].bytes <= plan.bytes - plan.offsets[i];
    if (plan.offsets[i] % kArenaAlignment != 0 || !is_inside) return report(i, i);
  }
  // In order of offset, each buffer is compared with those that begin before it ends.
  const std::vector<size_t> order = ascending({plan.offsets.begin(), plan.offsets.end()});
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t end = plan.offsets[order[i]] + buffers[order[i]].bytes;
    for (size_t k = i + 1; k < order.size() && plan.offsets[order[k]] < end; ++k) {
      if (buffers[order[k]].bytes > 0 && live_together(buffers[order[i]], buffers[order[k]]))
        return report(order[i], order[k]);
    }
  }
  return true;
}

}  // namespace phonebit::engine::memory
