#include "cpu/layer.h"

#include "fail.h"
#include "loader/validate.h"
#include "lowering/conv_shape.h"

namespace phonebit::cpu {

using format::OpKind;

std::unique_ptr<Layer> make_layer(const BuildContext& context, size_t index) {
  const loader::Op& op = context.model.ops[index];
  switch (op.kind) {
    case OpKind::kBinaryConv2d:
    case OpKind::kConv2d: {
      if (op.record.groups == 1) return make_conv_layer(context, op);
      return lowering::is_float_depthwise(context.model, op) ? make_depthwise_layer(context, op)
                                                             : make_grouped_conv_layer(context, op);
    }
    case OpKind::kBinaryDepthwiseConv2d:
      return make_depthwise_layer(context, op);
    case OpKind::kMaxPool2d:
    case OpKind::kAveragePool2d:
      return make_pool_layer(context, op);
    case OpKind::kElementwise:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return make_pixel_layer(context, op);
    case OpKind::kConcat:
    case OpKind::kPad:
    case OpKind::kReshape:
    case OpKind::kSelectChannels:
      return make_copy_layer(context, op);
  }
  fail(ErrorCode::internal, "%s: no layer for this op", loader::describe_op(context.model, index).c_str());
}

}  // namespace phonebit::cpu
