#include "cpu/epilogue_binding.h"

#include "cpu/part_slots.h"

namespace phonebit::engine::cpu {

using format::StepRecord;
using format::ThresholdKind;
using loader::Model;
using loader::Op;
using loader::Tensor;

EpilogueBinding::EpilogueBinding(const BuildContext& context, const Op& op, const OutputPart& part)
    : steps_(op.steps.size()), has_integer_threshold_(op.threshold_kind() == ThresholdKind::kI32) {
  const Model& model = context.model;
  const Tensor& out = model.output(op);
  const auto from_channel = [&](int constant) { return model.constant(constant).f32() + part.channel_begin; };
  for (size_t i = 0; i < op.steps.size(); ++i) {
    const StepRecord& record = op.steps[i];
    EpilogueStep& step = steps_[i];
    step = {};
    step.kind = static_cast<StepKind>(record.kind);
    step.low = record.value_a;
    step.high = record.value_b;
    if (record.constant_a >= 0) step.a = from_channel(record.constant_a);
    if (record.constant_b >= 0) step.b = from_channel(record.constant_b);
    if (step.kind == StepKind::kCount) {
      step.count_stride = out.channels;
      step.count =
          static_cast<int>(model.constant(record.constant_a).count / static_cast<uint64_t>(out.channels));
    }
    const bool is_per_element =
        step.kind == StepKind::kPrelu && out.pixels() > 1 &&
        model.constant(record.constant_a).count == static_cast<uint64_t>(out.elements());
    if (is_per_element) {
      step.slope_pixel_stride = out.channels;
      const int64_t first = int64_t{part.row_begin} * out.width * out.channels;
      step.a += first;
      if (step.b != nullptr) step.b += first;
    }
    if (record.tensor >= 0) {
      const bool is_broadcast = model.tensor(record.tensor).pixels() == 1;
      OutputPart operand = part;
      if (is_broadcast) operand.row_begin = 0;
      bind_output(context, record.tensor, operand, &step.tensor);
      step.tensor_pixel_stride = is_broadcast ? 0 : out.channels;
    }
  }
  epilogue_.steps = steps_.data();
  epilogue_.step_count = static_cast<int>(steps_.size());
  epilogue_.channels = part.channel_end - part.channel_begin;
  epilogue_.pixel_channels = out.channels;
  epilogue_.pixel_words = out.words();
  if (op.record.value_output >= 0) bind_output(context, op.record.value_output, part, &epilogue_.value);
  if (op.record.bits_output >= 0)
    bind_output(context, op.record.bits_output, part,
                has_integer_threshold_ ? &threshold_bits_ : &epilogue_.bits);
  if (op.threshold_kind() == ThresholdKind::kF32 && op.record.threshold >= 0)
    epilogue_.threshold = from_channel(op.record.threshold);
}

bool EpilogueBinding::bind_planes(const BuildContext& context, const Op& op) {
  const auto count = static_cast<int>(op.record.planes);
  if (steps_.empty() || steps_.back().kind != StepKind::kCount || count > kMaxEpiloguePlanes ||
      epilogue_.channels % 32 != 0)
    return false;
  const EpilogueStep& levels = steps_.back();
  const float* row = levels.a;
  for (int i = 1; i < levels.count; ++i, row += levels.count_stride)
    for (int c = 0; c < epilogue_.channels; ++c)
      if (!(row[c] <= row[c + levels.count_stride])) return false;
  planes_ = epilogue_;
  planes_.step_count -= 1;
  planes_.value = nullptr;
  planes_.threshold = levels.a;
  planes_.level_count = levels.count;
  planes_.level_stride = levels.count_stride;
  planes_.plane_count = count;
  for (int plane = 0; plane < count; ++plane)
    context.slots.bind(op.record.bits_output + plane, &planes_.planes[plane]);
  return true;
}

bool EpilogueBinding::join_rows(const Op& op, int width) {
  constexpr int kFewChannels = 16;
  const int channels = epilogue_.channels;
  if (channels != epilogue_.pixel_channels || channels >= kFewChannels || op.record.bits_output >= 0)
    return false;
  for (const EpilogueStep& step : steps_)
    if (step.kind != StepKind::kScaleBias && step.kind != StepKind::kClamp) return false;
  const int row = channels * width;
  row_factors_ =
      memory::AlignedBuffer(2 * steps_.size() * static_cast<size_t>(row) * sizeof(float), "factors");
  float* to = row_factors_.as<float>();
  for (EpilogueStep& step : steps_) {
    for (const float** const factors : {&step.a, &step.b}) {
      if (*factors == nullptr) continue;
      for (int i = 0; i < row; ++i) to[i] = (*factors)[i % channels];
      *factors = to;
      to += row;
    }
  }
  epilogue_.channels = epilogue_.pixel_channels = row;
  return true;
}

double epilogue_ns_per_element(const Op& op) {
  double ns = 0.1;
  for (const StepRecord& step : op.steps) ns += static_cast<double>(loader::traits(step).cost_ns);
  return ns;
}

}  // namespace phonebit::engine::cpu
