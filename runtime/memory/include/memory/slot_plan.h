// Shares a few separate blocks of memory among buffers with known life times, where one block with offsets
// will not do: OpenCL drivers crash on overlapping parts of one buffer (NVIDIA's 580, when they are
// released).
#pragma once

#include <cstddef>
#include <vector>

#include "memory/arena_plan.h"

namespace phonebit::engine::memory {

struct SlotPlan {
  std::vector<int> slot_of;        // one a buffer
  std::vector<size_t> slot_bytes;  // the largest buffer of each slot
  /// Largest sum of buffers that live at one time: no plan can need less.
  size_t lower_bound_bytes = 0;

  size_t bytes() const;
};

/// Largest buffers first, each into the first slot that is free while it lives (so no slot grows), else into
/// a new one. Deterministic.
SlotPlan plan_slots(const std::vector<Lifetime>& buffers);

/// An independent check: no two buffers of a slot live at the same time, and each fits. Returns the indices
/// of two buffers at fault in `conflict` (the same index twice: that one does not fit).
bool verify_slots(const std::vector<Lifetime>& buffers, const SlotPlan& plan, int conflict[2]);

}  // namespace phonebit::engine::memory
