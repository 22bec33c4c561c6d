#include "loader/model.h"

#include "types/fail.h"

namespace phonebit::engine::loader {

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

std::vector<int> Op::outputs() const {
  std::vector<int> result;
  if (record.value_output >= 0) result.push_back(record.value_output);
  if (record.bits_output < 0) return result;
  const int planes = kind == format::OpKind::kBitPlanes ? static_cast<int>(record.planes) : 1;
  for (int plane = 0; plane < planes; ++plane) result.push_back(record.bits_output + plane);
  return result;
}

int64_t Model::macs(const Op& op) const {
  const int64_t taps = int64_t{op.record.kernel_h} * op.record.kernel_w;
  switch (op.traits().weights) {
    case ops::Weights::filters:
      return output(op).elements() * taps * (operand(op).channels / static_cast<int>(op.record.groups));
    case ops::Weights::one_filter_a_channel:
      return output(op).elements() * taps;
    case ops::Weights::none:
    case ops::Weights::channel_indices:
      break;
  }
  return 0;
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

}  // namespace phonebit::engine::loader
