#include "analysis/memory_budget.h"

#include <cinttypes>

#include "types/fail.h"

namespace phonebit::engine::analysis {

void MemoryBudget::take(uint64_t bytes, const char* what) {
  if (bytes > limit_ || used_ > limit_ - bytes)
    fail(ErrorCode::format,
         "needs %" PRIu64 " MB for %s besides %" PRIu64 " MB for the rest, more than the limit of %" PRIu64
         " MB; raise Options::max_memory_bytes if the model is trusted",
         bytes >> 20, what, used_ >> 20, limit_ >> 20);
  used_ += bytes;
}

void check_arrays(const loader::Model& model, uint64_t max_bytes) {
  MemoryBudget callers(max_bytes);
  for (const auto* operands : {&model.inputs, &model.outputs})
    for (const int tensor : *operands) callers.take(model.tensor(tensor).bytes(), "an input or output");
}

}  // namespace phonebit::engine::analysis
