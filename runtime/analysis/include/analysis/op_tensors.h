// What an op reads and writes.
#pragma once

#include <vector>

#include "loader/model.h"

namespace phonebit::engine::analysis {

/// Operands, then the tensors of its steps, in order; a tensor may be listed twice.
std::vector<int> tensors_read(const loader::Op& op);
/// Value output, then bits outputs, where they exist.
std::vector<int> tensors_written(const loader::Op& op);

}  // namespace phonebit::engine::analysis
