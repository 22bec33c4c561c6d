#include "engine/descriptions.h"

#include "analysis/op_tensors.h"

namespace phonebit::engine {
namespace {

using format::DataType;

ElementType element_type(DataType dtype) {
  return dtype == DataType::kBit  ? ElementType::bit
         : dtype == DataType::kU8 ? ElementType::u8
                                  : ElementType::f32;
}

int64_t constant_bytes(const loader::Model& model, const loader::Op& op) {
  int64_t bytes = 0;
  const auto add = [&](int constant) {
    if (constant >= 0) bytes += static_cast<int64_t>(model.constant(constant).bytes());
  };
  add(op.record.weights);
  add(op.record.threshold);
  add(op.record.flip_mask);
  for (const format::StepRecord& step : op.steps) {
    add(step.constant_a);
    add(step.constant_b);
  }
  return bytes;
}

}  // namespace

TensorInfo describe_tensor(const loader::Tensor& tensor) {
  return {tensor.name, element_type(tensor.dtype), tensor.height, tensor.width, tensor.channels};
}

LayerInfo describe_layer(const loader::Model& model, const loader::Op& op) {
  LayerInfo info;
  info.name = op.name;
  info.kind = op.traits().name;
  info.macs = model.macs(op);
  info.binary = op.traits().is_binary();
  info.weight_bytes = constant_bytes(model, op);
  for (const int tensor : analysis::tensors_read(op)) info.inputs.push_back(model.tensor(tensor).name);
  for (const int tensor : analysis::tensors_written(op)) info.outputs.push_back(model.tensor(tensor).name);
  return info;
}

}  // namespace phonebit::engine
