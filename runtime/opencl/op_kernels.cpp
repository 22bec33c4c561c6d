// Which kind of op is served by which family of kernels.
#include "analysis/conv_shape.h"
#include "opencl/layer.h"
#include "types/fail.h"

namespace phonebit::opencl {
namespace {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;

const OpKernels& conv_kernels(const Model& model, const Op& op) {
  if (model.operand(op).dtype == DataType::kU8) return kU8ConvKernels;
  if (op.record.groups == 1) return kFloatConvKernels;
  return analysis::is_float_depthwise(model, op) ? kFloatDepthwiseKernels : kFloatGroupedConvKernels;
}

}  // namespace

const OpKernels& op_kernels(const Model& model, const Op& op) {
  const bool reads_bits = model.operand(op).dtype == DataType::kBit;
  switch (op.kind) {
    case OpKind::kBinaryConv2d:
      return kBinaryConvKernels;
    case OpKind::kBinaryDepthwiseConv2d:
      return kBinaryDepthwiseKernels;
    case OpKind::kConv2d:
      return conv_kernels(model, op);
    case OpKind::kMaxPool2d:
      return reads_bits ? kBitPoolKernels : kMaxPoolKernels;
    case OpKind::kAveragePool2d:
      return kAveragePoolKernels;
    case OpKind::kElementwise:
      return kElementwiseKernels;
    case OpKind::kConcat:
      return reads_bits ? kBitConcatKernels : kFloatConcatKernels;
    case OpKind::kPad:
      return kPadKernels;
    case OpKind::kReshape:
      return kReshapeKernels;
    case OpKind::kSoftmax:
      return kSoftmaxKernels;
    case OpKind::kLogSoftmax:
      return kLogSoftmaxKernels;
    case OpKind::kSelectChannels:
      return kSelectChannelsKernels;
  }
  fail(ErrorCode::internal, "op '%s': no kernels for this kind", op.name.c_str());
}

LayerFacts layer_facts(const Model& model, const Op& op) {
  LayerFacts facts{analysis::conv_shape(model, op),
                   static_cast<int>(op.record.groups),
                   op.record.bits_output >= 0,
                   op.threshold_kind() == format::ThresholdKind::kI32,
                   {}};
  for (const int operand : op.operands) facts.operand_channels.push_back(model.tensor(operand).channels);
  return facts;
}

bool can_serve(const Model& model, const Op& op, const Target& target, const KernelChoice& choice) {
  return can_serve(*op_kernels(model, op).family, layer_facts(model, op), target, choice);
}

}  // namespace phonebit::opencl
