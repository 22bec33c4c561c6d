#include "backend/level_model.h"

namespace phonebit::engine {

using format::DataType;

LevelModel::LevelModel(const loader::Tensor& input, const Preprocessing& rule)
    : scales_(static_cast<size_t>(input.channels) * sizeof(float), "preprocessing"),
      offsets_(static_cast<size_t>(input.channels) * sizeof(float), "preprocessing") {
  for (int c = 0; c < input.channels; ++c) {
    scales_.as<float>()[c] = rule.scale(c);
    offsets_.as<float>()[c] = rule.offset(c);
  }
  const auto count = static_cast<uint64_t>(input.channels);
  model_.constants = {{DataType::kF32, count, scales_.data()}, {DataType::kF32, count, offsets_.data()}};
  model_.tensors = {input, input};
  model_.tensors[0].dtype = DataType::kU8;
  model_.inputs = {0};
  model_.outputs = {1};
  loader::Op op{};
  op.name = input.name;
  op.kind = format::OpKind::kElementwise;
  op.operands = {0};
  format::OpRecord& record = op.record;
  record.kind = static_cast<uint32_t>(op.kind);
  record.operand_count = record.step_count = 1;
  record.value_output = 1;
  record.bits_output = record.weights = record.threshold = record.flip_mask = -1;
  record.kernel_h = record.kernel_w = record.stride_h = record.stride_w = 1;
  record.dilation_h = record.dilation_w = record.groups = 1;
  record.input_mul = 1;
  format::StepRecord step{};
  step.kind = static_cast<uint32_t>(format::StepKind::kScaleBias);
  step.tensor = -1;
  step.constant_a = 0;
  step.constant_b = 1;
  op.steps = {step};
  model_.ops = {op};
}

const Preprocessing* level_rule(const loader::Model& model, size_t input) {
  if (model.tensor(model.inputs[input]).dtype != DataType::kF32) return nullptr;
  for (const Preprocessing& rule : model.preprocessing)
    if (rule.input == static_cast<int>(input)) return &rule;
  return nullptr;
}

}  // namespace phonebit::engine
