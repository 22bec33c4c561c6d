#include "analysis/conv_shape.h"

#include <algorithm>
#include <cstdlib>

namespace phonebit::engine::analysis {

using cpu::ConvShape;
using format::DataType;
using format::OpKind;
using format::ThresholdKind;
using loader::Model;
using loader::Op;
using loader::Tensor;

ConvShape conv_shape(const loader::Model& model, const loader::Op& op) {
  const loader::Tensor& in = model.operand(op);
  const loader::Tensor& out = model.output(op);
  const format::OpRecord& record = op.record;
  ConvShape shape{};
  shape.in_h = in.height;
  shape.in_w = in.width;
  shape.in_c = in.channels;
  shape.out_h = out.height;
  shape.out_w = out.width;
  shape.out_c = out.channels;
  shape.kernel_h = static_cast<int>(record.kernel_h);
  shape.kernel_w = static_cast<int>(record.kernel_w);
  shape.stride_h = static_cast<int>(record.stride_h);
  shape.stride_w = static_cast<int>(record.stride_w);
  shape.dilation_h = static_cast<int>(record.dilation_h);
  shape.dilation_w = static_cast<int>(record.dilation_w);
  shape.pad_top = static_cast<int>(record.pad_top);
  shape.pad_left = static_cast<int>(record.pad_left);
  shape.pad_bottom = static_cast<int>(record.pad_bottom);
  shape.pad_right = static_cast<int>(record.pad_right);
  shape.pad_value = op.traits().is_binary() ? static_cast<int>(record.pad_value) : 0;
  const bool is_u8 = op.kind == OpKind::kConv2d && in.dtype == DataType::kU8;
  shape.input_mul = is_u8 ? record.input_mul : 1;
  shape.input_add = is_u8 ? record.input_add : 0;
  return shape;
}

std::vector<int32_t> integer_thresholds(const Model& model, const Op& op) {
  if (op.threshold_kind() != ThresholdKind::kI32) return {};
  const Tensor& in = model.operand(op);
  const bool is_depthwise = op.traits().weights == ops::Weights::one_filter_a_channel;
  const int64_t taps = int64_t{op.record.kernel_h} * op.record.kernel_w;
  int64_t bound = is_depthwise ? taps : taps * (in.channels / static_cast<int>(op.record.groups));
  if (in.dtype == format::DataType::kU8) {
    const int64_t at_0 = std::llabs(op.record.input_add);
    const int64_t at_255 = std::llabs(int64_t{255} * op.record.input_mul + op.record.input_add);
    bound *= std::max(at_0, at_255);
  }
  const loader::Constant& constant = model.constant(op.record.threshold);
  std::vector<int32_t> result(static_cast<size_t>(constant.count));
  const int64_t highest = std::min<int64_t>(bound + 1, INT32_MAX);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<int32_t>(std::clamp<int64_t>(constant.i32()[i], -bound, highest));
  return result;
}

bool is_float_depthwise(const Model& model, const Op& op) {
  const Tensor& in = model.operand(op);
  return op.kind == OpKind::kConv2d && in.dtype == DataType::kF32 &&
         static_cast<int>(op.record.groups) == in.channels && model.output(op).channels == in.channels;
}

}  // namespace phonebit::engine::analysis
