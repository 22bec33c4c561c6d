#include "engine/descriptions.h"

#include <algorithm>
#include <iterator>

#include "analysis/op_tensors.h"

namespace phonebit {
namespace {

using format::DataType;
using format::OpKind;

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

Preprocessing describe_preprocessing(const format::PreprocessingRecord& record) {
  static_assert(static_cast<uint32_t>(ColorOrder::rgba) == static_cast<uint32_t>(format::ColorOrder::kRgba));
  static_assert(static_cast<uint32_t>(Resize::letterbox) ==
                static_cast<uint32_t>(format::Resize::kLetterbox));
  static_assert(static_cast<uint32_t>(Interpolation::bicubic) ==
                static_cast<uint32_t>(format::Interpolation::kBicubic));
  Preprocessing result{};
  result.input = static_cast<int>(record.input);
  result.color_order = static_cast<ColorOrder>(record.color_order);
  result.resize = static_cast<Resize>(record.resize);
  result.resize_to = static_cast<int>(record.resize_to);
  result.fill_level = static_cast<int>(record.fill_level);
  result.interpolation = static_cast<Interpolation>(record.interpolation);
  result.low = record.low;
  result.high = record.high;
  std::copy(std::begin(record.mean), std::end(record.mean), result.mean);
  std::copy(std::begin(record.deviation), std::end(record.deviation), result.deviation);
  return result;
}

DetectionHead describe_detection(const format::DetectionRecord& record) {
  static_assert(static_cast<uint32_t>(HeadKind::yolov2) == static_cast<uint32_t>(format::HeadKind::kYolov2));
  DetectionHead result{static_cast<int>(record.output), static_cast<HeadKind>(record.kind), {}};
  for (uint32_t i = 0; i < record.anchor_count; ++i)
    result.anchors.push_back({record.anchors[2 * i], record.anchors[2 * i + 1]});
  return result;
}

LayerInfo describe_layer(const loader::Model& model, const loader::Op& op) {
  LayerInfo info;
  info.name = op.name;
  info.kind = loader::name_of(op.kind);
  info.macs = model.macs(op);
  info.binary = op.kind == OpKind::kBinaryConv2d || op.kind == OpKind::kBinaryDepthwiseConv2d;
  info.weight_bytes = constant_bytes(model, op);
  for (const int tensor : analysis::tensors_read(op)) info.inputs.push_back(model.tensor(tensor).name);
  for (const int tensor : analysis::tensors_written(op)) info.outputs.push_back(model.tensor(tensor).name);
  return info;
}

}  // namespace phonebit
