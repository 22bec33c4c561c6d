#include "cpu/i8_arithmetic.h"

#include <algorithm>
#include <cmath>

#include "kernel_types.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;

constexpr int kLargestByte = 127;
/// Integers up to this are float32 numbers.
constexpr int64_t kExactSum = int64_t{1} << 24;

const Op* producer(const Model& model, int tensor) {
  const auto found = std::find_if(model.ops.begin(), model.ops.end(),
                                  [tensor](const Op& op) { return op.record.value_output == tensor; });
  return found == model.ops.end() ? nullptr : &*found;
}

int largest_of_operands(const Model& model, const Op& op) {
  int largest = 0;
  for (const int operand : op.operands) {
    const int one = largest_integer(model, operand);
    if (one == 0) return 0;
    largest = std::max(largest, one);
  }
  return largest;
}

int64_t taps(const Model& model, const Op& op) {
  return int64_t{op.record.kernel_h} * op.record.kernel_w * model.operand(op).channels;
}

bool is_float_conv(const Model& model, const Op& op) {
  return op.kind == OpKind::kConv2d && model.operand(op).dtype == DataType::kF32;
}

}  // namespace

int largest_integer(const Model& model, int tensor) {
  const Op* const op = producer(model, tensor);
  if (op == nullptr || !op->steps.empty()) return 0;
  const DataType dtype = model.operand(*op).dtype;
  if (op->kind == OpKind::kElementwise && dtype != DataType::kF32) return dtype == DataType::kBit ? 1 : 255;
  if (op->traits().copies) return largest_of_operands(model, *op);
  if (op->kind != OpKind::kPad) return 0;
  const float pad = op->record.pad_value;
  if (!(std::fabs(pad) <= kLargestByte) || std::nearbyint(pad) != pad) return 0;
  const int inside = largest_of_operands(model, *op);
  return inside == 0 ? 0 : std::max(inside, static_cast<int>(std::fabs(pad)));
}

I8Arithmetic i8_arithmetic(const Model& model, const Op& op, Precision precision) {
  if (!is_float_conv(model, op) || op.record.groups != 1 || taps(model, op) > I8ConvKernel::kMaxTaps)
    return I8Arithmetic::none;
  const DataType stored = model.constant(op.record.weights).dtype;
  if (stored == DataType::kI8) {
    const int largest = largest_integer(model, op.operands[0]);
    if (largest > 0 && largest <= kLargestByte && largest * kLargestByte * taps(model, op) <= kExactSum)
      return I8Arithmetic::exact;
  }
  const bool is_permitted = stored == DataType::kI8 || stored == DataType::kF16;
  return precision == Precision::fast && is_permitted ? I8Arithmetic::quantized : I8Arithmetic::none;
}

std::string kept_exact_text(const Model& model) {
  std::string stored, other;
  const auto add = [](std::string& list, const Op& op) { list += (list.empty() ? "" : ", ") + op.name; };
  for (const Op& op : model.ops) {
    if (!is_float_conv(model, op)) continue;
    const DataType dtype = model.constant(op.record.weights).dtype;
    if (dtype == DataType::kBit || i8_arithmetic(model, op, Precision::fast) != I8Arithmetic::none) continue;
    add(dtype == DataType::kF32 ? stored : other, op);
  }
  if (!stored.empty())
    stored = "the file stores the weights of " + stored +
             " as f32, so these layers stay exact; convert with --float-weights i8 (or f16) to permit less";
  if (!other.empty()) other = other + ": groups or windows that have no 8-bit kernel stay exact";
  if (stored.empty() && other.empty()) return "";
  return "precision 'fast': " + stored + (stored.empty() || other.empty() ? "" : "; ") + other;
}

}  // namespace phonebit::engine::cpu
