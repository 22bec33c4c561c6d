// The limit on what a file may make the engine allocate.
#pragma once

#include <cstdint>

#include "loader/model.h"

namespace phonebit::engine::analysis {

/// Keeps the sum of all memory that a model makes the engine allocate below a limit, so that a small damaged
/// or hostile file cannot exhaust the machine.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t limit_bytes) : limit_(limit_bytes) {}
  /// Throws Error(format) when the sum so far plus `bytes` exceeds the limit.
  void take(uint64_t bytes, const char* what);
  uint64_t left() const { return limit_ - used_; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
};

/// Callers allocate what a file says that they must: throws Error(format) where inputs and outputs of one image
/// together exceed the limit.
void check_arrays(const loader::Model& model, uint64_t max_bytes);

}  // namespace phonebit::engine::analysis
