#include "cpu/layer.h"

#include "fail.h"
#include "loader/validate.h"

namespace phonebit::cpu {

using format::DataType;
using format::OpKind;

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
  const bool is_binary = op.kind == OpKind::kBinaryConv2d || op.kind == OpKind::kBinaryDepthwiseConv2d;
  shape.pad_value = is_binary ? static_cast<int>(record.pad_value) : 0;
  const bool is_u8 = op.kind == OpKind::kConv2d && in.dtype == DataType::kU8;
  shape.input_mul = is_u8 ? record.input_mul : 1;
  shape.input_add = is_u8 ? record.input_add : 0;
  return shape;
}

std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index) {
  const loader::Op& op = context.model.ops[index];
  switch (op.kind) {
    case OpKind::kBinaryConv2d:
    case OpKind::kConv2d: {
      if (op.record.groups == 1) return make_conv_layer(context, op);
      const loader::Tensor& in = context.model.operand(op);
      const bool is_depthwise = in.dtype == DataType::kF32 &&
                                static_cast<int>(op.record.groups) == in.channels &&
                                context.model.output(op).channels == in.channels;
      return is_depthwise ? make_depthwise_layer(context, op) : make_grouped_conv_layer(context, op);
    }
    case OpKind::kBinaryDepthwiseConv2d:
      return make_depthwise_layer(context, op);
    case OpKind::kMaxPool2d:
    case OpKind::kAveragePool2d:
      return make_pool_layer(context, op);
    case OpKind::kElementwise:
    case OpKind::kSoftmax:
      return make_pixel_layer(context, op);
    case OpKind::kConcat:
    case OpKind::kPad:
    case OpKind::kReshape:
      return make_copy_layer(context, op);
  }
  fail(ErrorCode::internal, "%s: no layer for this op", loader::describe_op(context.model, index).c_str());
}

}  // namespace phonebit::cpu
