// The bytes of a tensor that a part of it takes.
#pragma once

#include <cstddef>

#include "gpu/device.h"
#include "loader/model.h"
#include "types/plan.h"

namespace phonebit::engine::coexec {

/// Channels of packed bits begin and end at multiples of 8, or at the last channel: then the last word's
/// unused bits belong to the part.
gpu::Region region_of(const loader::Tensor& tensor, const OutputPart& part);

/// Copies the region from one memory of the tensor to another.
void copy_region(const gpu::Region& region, const std::byte* from, std::byte* to);

}  // namespace phonebit::engine::coexec
