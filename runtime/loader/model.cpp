#include "loader/model.h"

#include "types/fail.h"

namespace phonebit::loader {

size_t Tensor::bytes() const {
  switch (dtype) {
    case format::DataType::kBit:
      return static_cast<size_t>(pixels()) * static_cast<size_t>(words()) * sizeof(uint32_t);
    case format::DataType::kU8:
      return static_cast<size_t>(elements());
    default:
      return static_cast<size_t>(elements()) * sizeof(float);
  }
}

std::string Tensor::describe() const {
  return format_text("%dx%dx%d %s", height, width, channels, name_of(dtype));
}

int64_t Model::macs(const Op& op) const {
  const int64_t taps = int64_t{op.record.kernel_h} * op.record.kernel_w;
  switch (op.kind) {
    case format::OpKind::kBinaryConv2d:
    case format::OpKind::kConv2d:
      return output(op).elements() * taps * (operand(op).channels / static_cast<int>(op.record.groups));
    case format::OpKind::kBinaryDepthwiseConv2d:
      return output(op).elements() * taps;
    default:
      return 0;
  }
}

const char* name_of(format::OpKind kind) {
  switch (kind) {
    case format::OpKind::kBinaryConv2d:
      return "binary_conv2d";
    case format::OpKind::kBinaryDepthwiseConv2d:
      return "binary_depthwise_conv2d";
    case format::OpKind::kConv2d:
      return "conv2d";
    case format::OpKind::kMaxPool2d:
      return "max_pool2d";
    case format::OpKind::kAveragePool2d:
      return "average_pool2d";
    case format::OpKind::kElementwise:
      return "elementwise";
    case format::OpKind::kConcat:
      return "concat";
    case format::OpKind::kPad:
      return "pad";
    case format::OpKind::kReshape:
      return "reshape";
    case format::OpKind::kSoftmax:
      return "softmax";
    case format::OpKind::kSelectChannels:
      return "select_channels";
    case format::OpKind::kLogSoftmax:
      return "log_softmax";
  }
  return "unknown op";
}

const char* name_of(format::DataType dtype) {
  switch (dtype) {
    case format::DataType::kBit:
      return "bit";
    case format::DataType::kU8:
      return "u8";
    case format::DataType::kI32:
      return "i32";
    case format::DataType::kF32:
      return "f32";
    case format::DataType::kF16:
      return "f16";
    case format::DataType::kI8:
      return "i8";
  }
  return "unknown type";
}

}  // namespace phonebit::loader
