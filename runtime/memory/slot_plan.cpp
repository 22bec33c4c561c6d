#include "memory/slot_plan.h"

#include <algorithm>
#include <numeric>

#include "memory/ascending.h"

namespace phonebit::engine::memory {
namespace {

bool live_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

size_t largest_live_sum(const std::vector<Lifetime>& buffers) {
  size_t most = 0;
  // The sum only grows where a buffer begins.
  for (const Lifetime& at : buffers) {
    size_t sum = 0;
    for (const Lifetime& buffer : buffers) {
      if (buffer.first <= at.first && at.first <= buffer.last) sum += buffer.bytes;
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

size_t SlotPlan::bytes() const { return std::accumulate(slot_bytes.begin(), slot_bytes.end(), size_t{0}); }

SlotPlan plan_slots(const std::vector<Lifetime>& buffers) {
  std::vector<uint64_t> keys;
  keys.reserve(buffers.size());
  for (const Lifetime& buffer : buffers) keys.push_back(~uint64_t{buffer.bytes});
  SlotPlan plan;
  plan.slot_of.assign(buffers.size(), -1);
  plan.lower_bound_bytes = largest_live_sum(buffers);
  std::vector<std::vector<size_t>> tenants;
  for (const size_t buffer : ascending(keys)) {
    const auto is_free = [&](const std::vector<size_t>& slot) {
      return std::none_of(slot.begin(), slot.end(),
                          [&](size_t other) { return live_together(buffers[buffer], buffers[other]); });
    };
    const auto slot = std::find_if(tenants.begin(), tenants.end(), is_free);
    plan.slot_of[buffer] = static_cast<int>(slot - tenants.begin());
    if (slot == tenants.end()) {
      tenants.push_back({buffer});
      plan.slot_bytes.push_back(buffers[buffer].bytes);
    } else {
      slot->push_back(buffer);
    }
  }
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
