#include "cpu/epilogue_binding.h"

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
    const bool has_slopes = step.kind == StepKind::kPrelu;
    if (has_slopes && step.b != nullptr) step.kind = StepKind::kTwoSlopes;
    const bool is_per_element =
        has_slopes && out.pixels() > 1 &&
        model.constant(record.constant_a).count == static_cast<uint64_t>(out.elements());
    step.slope_pixel_stride = is_per_element ? out.channels : 0;
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
