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

std::vector<int> tensors_written(const Op& op) {
  std::vector<int> result;
  for (const int tensor : {op.record.value_output, op.record.bits_output}) {
    if (tensor >= 0) result.push_back(tensor);
  }
  return result;
}

}  // namespace phonebit::engine::analysis
