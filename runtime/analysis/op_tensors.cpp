#include "analysis/op_tensors.h"

namespace phonebit::engine::analysis {

using loader::Op;

std::vector<int> tensors_read(const Op& op) {
  std::vector<int> result = op.operands;
  for (const format::StepRecord& step : op.steps) {
    if (loader::traits(step).reads_tensor()) result.push_back(step.tensor);
  }
  return result;
}

std::vector<int> tensors_written(const Op& op) { return op.outputs(); }

}  // namespace phonebit::engine::analysis
