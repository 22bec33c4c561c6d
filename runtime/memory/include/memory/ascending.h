// Sorting by a number, once for all that is sorted so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace phonebit::engine::memory {

/// The indices of `keys`, that of the smallest key first and equal ones as they stand. Keys `~x` sort by x,
/// the largest first.
std::vector<size_t> ascending(const std::vector<uint64_t>& keys);

}  // namespace phonebit::engine::memory
