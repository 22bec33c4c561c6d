#include "backend/level_model.h"

#include <utility>

namespace phonebit::engine {

using format::DataType;

LevelModel::LevelModel(const loader::Tensor& input, const Preprocessing& rule)
    : factors_(2 * static_cast<size_t>(input.channels) * sizeof(float), "preprocessing") {
  float* const scales = factors_.as<float>();
  float* const offsets = scales + input.channels;
  for (int c = 0; c < input.channels; ++c) {
    scales[c] = rule.scale(c);
    offsets[c] = rule.offset(c);
  }
  for (const float* const factors : {scales, offsets})
    model_.constants.push_back(
        {DataType::kF32, static_cast<uint64_t>(input.channels), reinterpret_cast<const std::byte*>(factors)});
  for (const DataType dtype : {DataType::kU8, DataType::kF32})
    model_.tensors.push_back({input.name, dtype, input.height, input.width, input.channels});
  model_.inputs.push_back(0);
  model_.outputs.push_back(1);
  loader::Op op{};
  op.name = input.name;
  op.kind = format::OpKind::kElementwise;
  op.operands.push_back(0);
  format::OpRecord& record = op.record;
  record.kind = static_cast<uint32_t>(op.kind);
  record.value_output = 1;
  record.bits_output = record.weights = record.threshold = record.flip_mask = format::kNone;
  record.kernel_h = record.kernel_w = record.stride_h = record.stride_w = 1;
  record.dilation_h = record.dilation_w = record.groups = 1;
  format::StepRecord step{};
  step.kind = static_cast<uint32_t>(format::StepKind::kScaleBias);
  step.tensor = format::kNone;
  step.constant_b = 1;  // constant_a is 0
  op.steps.push_back(step);
  model_.ops.push_back(std::move(op));
}

const Preprocessing* level_rule(const loader::Model& model, size_t input) {
  if (model.tensor(model.inputs[input]).dtype != DataType::kF32) return nullptr;
  for (const Preprocessing& rule : model.preprocessing)
    if (rule.input == static_cast<int>(input)) return &rule;
  return nullptr;
}

}  // namespace phonebit::engine
