// Which kind of op is served by which kernels, and what the tuning table calls its shape.
#include <algorithm>

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

TuningQuery tuning_query(const Model& model, const Op& op) {
  // Output pixels: below, a device is short of work for pixels alone; above, tiles may be as large as they
  // like.
  constexpr int kSmallMap = 256, kLargeMap = 4096;
  const cpu::ConvShape s = analysis::conv_shape(model, op);
  const int pixels = s.out_h * s.out_w;
  TuningQuery query;
  query.op = op_kernels(model, op).op;
  const bool is_pointwise = s.kernel_h == 1 && s.kernel_w == 1;
  query.shape = pixels == 1           ? "dense"
                : pixels <= kSmallMap ? (is_pointwise ? "small_pointwise" : "small")
                : is_pointwise        ? "pointwise"
                : pixels > kLargeMap  ? "large"
                                      : "window";
  query.signature =
      format_text("%dx%ds%dd%dg%d_%dc_%dx%d_%dc", s.kernel_h, s.kernel_w, s.stride_h, s.dilation_h,
                  static_cast<int>(op.record.groups), s.in_c, s.out_h, s.out_w, s.out_c);
  return query;
}

bool can_serve(const Model& model, const Op& op, const Target& target, const KernelChoice& choice) {
  const OpKernels& kernels = op_kernels(model, op);
  return std::find(kernels.kernels.begin(), kernels.kernels.end(), choice.kernel) != kernels.kernels.end() &&
         kernels.serves(model, op, target, choice);
}

}  // namespace phonebit::opencl
