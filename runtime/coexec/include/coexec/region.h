// The bytes of a tensor that a part of it takes.
#pragma once

#include <cstddef>

#include "loader/model.h"
#include "types/plan.h"

namespace phonebit::engine::coexec {

/// `runs` stretches of `run_bytes`, the first at `offset`, each `pitch` after the one before it: a rectangle
/// of an NHWC tensor. All channels of some rows are one run.
struct Region {
  size_t offset, run_bytes, runs, pitch;

  size_t bytes() const { return run_bytes * runs; }
};

/// Channels of packed bits begin and end at multiples of 8, or at the last channel: then the last word's
/// unused bits belong to the part.
Region region_of(const loader::Tensor& tensor, const OutputPart& part);

/// Copies the region from one memory of the tensor to another.
void copy_region(const Region& region, const std::byte* from, std::byte* to);

}  // namespace phonebit::engine::coexec
