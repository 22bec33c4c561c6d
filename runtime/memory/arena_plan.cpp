// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020):
// place the largest buffer first, each into the tightest gap between the buffers that are already placed and
// live at the same time. Networks with a long residual chain pack better in order of time, so that order is
// tried as well.
#include "memory/arena_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

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
  size_t maximum = 0;
  for (const size_t step : change) {
    live += step;
    maximum = std::max(maximum, live);
  }
  return maximum;
}

std::vector<size_t> bytes_of(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> bytes;
  bytes.reserve(buffers.size());
  for (const Lifetime& buffer : buffers) bytes.push_back(buffer.bytes);
  return bytes;
}

std::vector<size_t> largest_first(const std::vector<size_t>& bytes) {
  std::vector<uint64_t> keys;
  keys.reserve(bytes.size());
  for (const size_t of_buffer : bytes) keys.push_back(~uint64_t{of_buffer});
  return ascending(keys);
}

size_t largest_live_sum(const std::vector<Lifetime>& buffers) {
  size_t maximum = 0;
  // The sum only grows where a buffer begins.
  for (const Lifetime& at : buffers) {
    size_t sum = 0;
    for (const Lifetime& buffer : buffers) {
      if (buffer.first <= at.first && at.first <= buffer.last) sum += buffer.bytes;
    }
    maximum = std::max(maximum, sum);
  }
  return maximum;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<Lifetime>& buffers) {
  const size_t bound = lower_bound(buffers);
  const std::vector<size_t> by_size = largest_first(bytes_of(buffers));
  ArenaPlan best = place_in_order(buffers, by_size);
  if (best.bytes > bound) {
    // Of those that begin together, the largest first.
    std::vector<uint64_t> keys;
    keys.reserve(buffers.size());
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

size_t SlotPlan::bytes() const { return std::accumulate(slot_bytes.begin(), slot_bytes.end(), size_t{0}); }

SlotPlan plan_slots(const std::vector<size_t>& bytes, const Conflict& conflict) {
  SlotPlan plan;
  plan.slot_of.assign(bytes.size(), -1);
  std::vector<std::vector<size_t>> tenants;
  for (const size_t buffer : largest_first(bytes)) {
    const auto is_free = [&](const std::vector<size_t>& slot) {
      return std::none_of(slot.begin(), slot.end(), [&](size_t other) { return conflict(buffer, other); });
    };
    const auto slot = std::find_if(tenants.begin(), tenants.end(), is_free);
    plan.slot_of[buffer] = static_cast<int>(slot - tenants.begin());
    if (slot == tenants.end()) {
      tenants.push_back({buffer});
      plan.slot_bytes.push_back(bytes[buffer]);
    } else {
      slot->push_back(buffer);
    }
  }
  return plan;
}

SlotPlan plan_slots(const std::vector<Lifetime>& buffers) {
  SlotPlan plan = plan_slots(bytes_of(buffers),
                             [&](size_t a, size_t b) { return live_together(buffers[a], buffers[b]); });
  plan.lower_bound_bytes = largest_live_sum(buffers);
  return plan;
}

bool verify_slots(const std::vector<Lifetime>& buffers, const SlotPlan& plan, int conflict[2]) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    const auto slot = static_cast<size_t>(plan.slot_of[a]);
    conflict[0] = conflict[1] = static_cast<int>(a);
    if (slot >= plan.slot_bytes.size() || buffers[a].bytes > plan.slot_bytes[slot]) return false;
    for (size_t b = a + 1; b < buffers.size(); ++b) {
      conflict[1] = static_cast<int>(b);
      if (plan.slot_of[a] == plan.slot_of[b] && live_together(buffers[a], buffers[b])) return false;
    }
  }
  return true;
}

}  // namespace phonebit::engine::memory
