// Memory for buffers with known life times: one block with offsets, or a few blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace phonebit::engine::memory {

/// Every buffer starts at a multiple of this (a cache line, the widest vector).
inline constexpr size_t kArenaAlignment = 64;

/// A buffer that holds data from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes;
  int first, last;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  // one a buffer, multiples of kArenaAlignment
  size_t bytes = 0;             // of the whole arena
  /// Largest sum of buffers (rounded up to the alignment) that live at one time: no plan can be smaller.
  size_t lower_bound_bytes = 0;
};

/// Tries several greedy orders, each with best fit, and returns the smallest arena. Deterministic.
ArenaPlan plan_arena(const std::vector<Lifetime>& buffers);

/// An independent check: aligned, inside the arena, and no two buffers that live at the same time overlap.
/// Returns the indices of two buffers at fault in `conflict` (the same index twice: that one is misplaced by
/// itself).
bool verify_arena(const std::vector<Lifetime>& buffers, const ArenaPlan& plan, int conflict[2]);

/// A few separate blocks of memory shared among buffers, where one block with offsets will not do: OpenCL
/// drivers crash on overlapping parts of one buffer (NVIDIA's 580, when they are released).
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

/// The same for buffers of these sizes, of which `conflict` says whether two need memory of their own; without
/// a lower bound.
using Conflict = std::function<bool(size_t, size_t)>;
SlotPlan plan_slots(const std::vector<size_t>& bytes, const Conflict& conflict);

/// An independent check: no two buffers of a slot live at the same time, and each fits. Returns the indices
/// of two buffers at fault in `conflict` (the same index twice: that one does not fit).
bool verify_slots(const std::vector<Lifetime>& buffers, const SlotPlan& plan, int conflict[2]);

}  // namespace phonebit::engine::memory
