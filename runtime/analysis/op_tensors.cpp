#include "analysis/op_tensors.h"

namespace phonebit::analysis {

using format::StepKind;
using loader::Op;

std::vector<int> tensors_read(const Op& op) {
  std::vector<int> result = op.operands;
  for (size_t i = 0; i < op.steps.size(); ++i) {
    if (op.step_kind(i) == StepKind::kAdd || op.step_kind(i) == StepKind::kMultiply)
      result.push_back(op.steps[i].tensor);
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

}  // namespace phonebit::analysis
