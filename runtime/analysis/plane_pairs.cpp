#include "analysis/plane_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/op_tensors.h"
#include "kernel_types.h"

namespace phonebit::engine::analysis {
namespace {

using format::OpRecord;
using format::StepKind;
using format::StepRecord;
using loader::Model;
using loader::Op;

constexpr double kLargestExact = 1 << 24;

/// The power of two, 1 or more, by which a step multiplies all channels; else 0.
float unit_of(const Model& model, const StepRecord& step) {
  if (static_cast<StepKind>(step.kind) != StepKind::kScaleBias) return 0;
  const loader::Constant& scale = model.constant(step.constant_a);
  const loader::Constant& bias = model.constant(step.constant_b);
  const float unit = *scale.f32();
  int exponent;
  const bool is_unit =
      unit >= 1 && std::frexp(unit, &exponent) == 0.5F &&
      std::all_of(scale.f32(), scale.f32() + scale.count, [=](float s) { return s == unit; }) &&
      std::all_of(bias.f32(), bias.f32() + bias.count, [](float b) { return b == 0; });
  return is_unit ? unit : 0;
}

/// The unit of an op whose sums are weighted and then added to `tensor`; else 0.
float unit_added_to(const Model& model, const Op& op, int tensor) {
  const bool adds = op.steps.size() >= 2 && static_cast<StepKind>(op.steps[1].kind) == StepKind::kAdd &&
                    op.steps[1].tensor == tensor;
  return adds ? unit_of(model, op.steps[0]) : 0;
}

/// Binary convolutions that differ in their input's bits, and what those are padded with, alone.
bool are_alike(const Model& model, const Op& a, const Op& b) {
  const OpRecord &r = a.record, &s = b.record;
  const auto shape = [&](int t) {
    const loader::Tensor& tensor = model.tensor(t);
    return std::array{tensor.height, tensor.width, tensor.channels};
  };
  const auto window = [](const OpRecord& op) {
    return std::array{op.kernel_h,   op.kernel_w, op.stride_h, op.stride_w,   op.dilation_h,
                      op.dilation_w, op.pad_top,  op.pad_left, op.pad_bottom, op.pad_right};
  };
  return a.kind == format::OpKind::kBinaryConv2d && a.kind == b.kind && r.weights == s.weights &&
         r.groups == 1 && s.groups == 1 && window(r) == window(s) &&
         (r.pad_value == 0) == (s.pad_value == 0) && shape(a.operands[0]) == shape(b.operands[0]) &&
         shape(a.any_output()) == shape(b.any_output());
}

}  // namespace

std::vector<bool> plane_pairs(const Model& model) {
  if constexpr (!cpu::kHavePlanesKernels) return {};

  std::vector<bool> pairs(model.ops.size());
  std::vector<int> readers(model.tensors.size());
  for (const Op& op : model.ops)
    for (const int tensor : tensors_read(op)) ++readers[static_cast<size_t>(tensor)];
  for (const int tensor : model.outputs) ++readers[static_cast<size_t>(tensor)];

  std::vector<double> largest(model.ops.size());  // of a pair's value, where it is nothing but the sum
  for (size_t i = 1; i < model.ops.size(); ++i) {
    const Op &op = model.ops[i], &before = model.ops[i - 1];
    const int sum = before.record.value_output;
    if (sum < 0 || before.record.bits_output >= 0 || readers[static_cast<size_t>(sum)] != 1 ||
        !are_alike(model, before, op))
      continue;
    float unit = before.steps.empty() ? 1 : 0;
    double rest = 0;
    if (before.steps.size() == 2 && i >= 2 && largest[i - 2] > 0) {
      unit = unit_added_to(model, before, model.ops[i - 2].record.value_output);
      rest = largest[i - 2];
    }
    const double taps =
        static_cast<double>(op.record.kernel_h) * op.record.kernel_w * model.operand(op).channels;
    const double reach = 3 * unit * taps + rest;
    pairs[i] = unit > 0 && unit_added_to(model, op, sum) == 2 * unit && reach < kLargestExact;
    if (pairs[i] && op.steps.size() == 2 && op.record.bits_output < 0) largest[i] = reach;
  }
  return pairs;
}

}  // namespace phonebit::engine::analysis
