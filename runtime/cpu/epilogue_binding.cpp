#include "cpu/epilogue_binding.h"

#include <algorithm>
#include <cstdlib>

namespace phonebit::cpu {

using format::StepRecord;
using format::ThresholdKind;
using loader::Model;
using loader::Op;
using loader::Tensor;

EpilogueBinding::EpilogueBinding(const BuildContext& context, const Op& op)
    : steps_(op.steps.size()), has_integer_threshold_(op.threshold_kind() == ThresholdKind::kI32) {
  const Model& model = context.model;
  const Tensor& out = model.output(op);
  for (size_t i = 0; i < op.steps.size(); ++i) {
    const StepRecord& record = op.steps[i];
    EpilogueStep& step = steps_[i];
    step = {};
    step.kind = static_cast<StepKind>(record.kind);
    step.low = record.value_a;
    step.high = record.value_b;
    if (record.constant_a >= 0) step.a = model.constant(record.constant_a).f32();
    if (record.constant_b >= 0) step.b = model.constant(record.constant_b).f32();
    const bool is_per_element =
        step.kind == StepKind::kPrelu && out.pixels() > 1 &&
        model.constant(record.constant_a).count == static_cast<uint64_t>(out.elements());
    step.a_pixel_stride = is_per_element ? out.channels : 0;
    if (record.tensor >= 0) {
      context.storage.bind(record.tensor, &step.tensor);
      step.tensor_pixel_stride = model.tensor(record.tensor).pixels() > 1 ? out.channels : 0;
    }
  }
  epilogue_.steps = steps_.data();
  epilogue_.step_count = static_cast<int>(steps_.size());
  epilogue_.channels = out.channels;
  if (op.record.value_output >= 0) context.storage.bind(op.record.value_output, &epilogue_.value);
  if (op.record.bits_output >= 0)
    context.storage.bind(op.record.bits_output, has_integer_threshold_ ? &threshold_bits_ : &epilogue_.bits);
  if (op.threshold_kind() == ThresholdKind::kF32 && op.record.threshold >= 0)
    epilogue_.threshold = model.constant(op.record.threshold).f32();
}

std::vector<int32_t> integer_thresholds(const Model& model, const Op& op) {
  if (op.threshold_kind() != ThresholdKind::kI32) return {};
  const Tensor& in = model.operand(op);
  const bool is_depthwise = op.kind == format::OpKind::kBinaryDepthwiseConv2d;
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

double epilogue_ns_per_element(const Op& op) {
  double ns = 0.1;
  for (size_t i = 0; i < op.steps.size(); ++i) {
    const bool is_transcendental =
        op.step_kind(i) == format::StepKind::kSigmoid || op.step_kind(i) == format::StepKind::kTanh;
    ns += is_transcendental ? 1.0 : 0.1;
  }
  return ns;
}

}  // namespace phonebit::cpu
