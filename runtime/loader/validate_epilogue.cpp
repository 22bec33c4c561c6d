#include <algorithm>
#include <cinttypes>

#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::DataType;
using format::StepRecord;
using format::ThresholdKind;
using ops::StepForm;

void check_step_tensor(const Model& model, const Op& op, const StepRecord& step, const std::string& where) {
  if (step.tensor < 0 || static_cast<size_t>(step.tensor) >= model.tensors.size())
    fail_damaged("%s: tensor %" PRId32 " does not exist, there are %zu", where.c_str(), step.tensor,
                 model.tensors.size());
  const Tensor& tensor = model.tensor(step.tensor);
  const Tensor& out = model.output(op);
  const bool is_full = tensor.height == out.height && tensor.width == out.width;
  const bool is_broadcast = tensor.height == 1 && tensor.width == 1;
  if (tensor.dtype != DataType::kF32 || tensor.channels != out.channels || !(is_full || is_broadcast))
    fail_damaged("%s: tensor '%s' is %s, expected %dx%dx%d f32 or 1x1x%d f32", where.c_str(),
                 tensor.name.c_str(), tensor.describe().c_str(), out.height, out.width, out.channels,
                 out.channels);
}

/// References that the step would ignore must be absent.
void check_step_unused(const StepRecord& step, const std::string& where) {
  const ops::Step& kind = traits(step);
  if ((!kind.reads_tensor() && step.tensor != format::kNone) ||
      (!kind.reads_constants() && (step.constant_a != format::kNone || step.constant_b != format::kNone)))
    fail_damaged("%s: refers to a tensor or constant that it does not use", where.c_str());
}

void check_step(const Model& model, const Op& op, const StepRecord& step, const std::string& where) {
  const Tensor& out = model.output(op);
  if (!ops::is_step(step.kind))
    fail(ErrorCode::format, "%s: unknown kind %" PRIu32 "; update PhoneBit or convert the model again",
         where.c_str(), step.kind);
  check_step_unused(step, where);
  switch (traits(step).form) {
    case StepForm::scale_bias:
      require_constant(model, step.constant_a, DataType::kF32, out.channels, where, "scales");
      require_constant(model, step.constant_b, DataType::kF32, out.channels, where, "biases");
      return;
    case StepForm::add:
    case StepForm::multiply:
      return check_step_tensor(model, op, step, where);
    case StepForm::prelu: {
      const bool exists =
          step.constant_a >= 0 && static_cast<size_t>(step.constant_a) < model.constants.size();
      const bool is_per_element =
          exists && model.constant(step.constant_a).count == static_cast<uint64_t>(out.elements());
      const int64_t count = is_per_element ? out.elements() : out.channels;
      require_constant(model, step.constant_a, DataType::kF32, count, where, "slopes");
      if (step.constant_b != format::kNone)
        require_constant(model, step.constant_b, DataType::kF32, count, where, "slopes of values >= 0");
      return;
    }
    case StepForm::count: {
      const bool exists =
          step.constant_a >= 0 && static_cast<size_t>(step.constant_a) < model.constants.size();
      const uint64_t given = exists ? model.constant(step.constant_a).count : 0;
      const int64_t rows = static_cast<int64_t>(given / static_cast<uint64_t>(out.channels));
      require_constant(model, step.constant_a, DataType::kF32,
                       std::clamp(rows, int64_t{1}, ops::kMaxCounted) * out.channels, where, "thresholds");
      if (step.constant_b != format::kNone)
        fail_damaged("%s: refers to a constant that it does not use", where.c_str());
      return;
    }
    case StepForm::clamp:
    case StepForm::function:
      return;
  }
}

void check_output_types(const Model& model, const Op& op, const std::string& where) {
  const int32_t value = op.record.value_output;
  if (value != format::kNone && model.tensor(value).dtype != DataType::kF32)
    fail_damaged("%s: value_output '%s' is %s, expected f32", where.c_str(), model.tensor(value).name.c_str(),
                 name_of(model.tensor(value).dtype));
  for (const int output : op.outputs()) {
    if (output != value && model.tensor(output).dtype != DataType::kBit)
      fail_damaged("%s: bits_output '%s' is %s, expected bit", where.c_str(),
                   model.tensor(output).name.c_str(), name_of(model.tensor(output).dtype));
  }
}

/// Ops without an epilogue: one output, of the operand's type where they copy, and nothing else. BIT_PLANES has
/// bits instead.
void check_plain(const Model& model, const Op& op, const std::string& where) {
  const bool is_bit = op.kind == format::OpKind::kBitPlanes ||
                      (model.operand(op).dtype == DataType::kBit && !op.traits().is_product());
  if ((op.record.value_output != format::kNone) == is_bit ||
      (op.record.bits_output != format::kNone) != is_bit)
    fail_damaged("%s: must have one output, of %s", where.c_str(), is_bit ? "bits" : "floats");
  if (!op.steps.empty() || op.threshold_kind() != ThresholdKind::kNone ||
      op.record.threshold != format::kNone)
    fail_damaged("%s: takes no steps and no threshold", where.c_str());
}

void check_threshold(const Model& model, const Op& op, const std::string& where) {
  const int64_t channels = model.output(op).channels;
  const bool has_bits = op.record.bits_output != format::kNone;
  switch (op.threshold_kind()) {
    case ThresholdKind::kNone:
      if (has_bits || op.record.threshold != format::kNone)
        fail_damaged("%s: bits_output or threshold without a threshold_kind", where.c_str());
      return;
    case ThresholdKind::kI32:
      if (!has_bits || op.record.value_output != format::kNone || !op.steps.empty() ||
          !ops::has_type(op.traits().sums, model.operand(op).dtype))
        fail_damaged("%s: an integer threshold needs an integer accumulator, no steps and bits_output only",
                     where.c_str());
      require_constant(model, op.record.threshold, DataType::kI32, channels, where, "thresholds");
      return;
    case ThresholdKind::kF32:
      if (!has_bits) fail_damaged("%s: a threshold without bits_output", where.c_str());
      if (op.record.threshold != format::kNone)
        require_constant(model, op.record.threshold, DataType::kF32, channels, where, "thresholds");
      return;
  }
}

}  // namespace

void validate_epilogue(const Model& model, const Op& op, const std::string& where) {
  check_output_types(model, op, where);
  if (op.record.threshold_kind > static_cast<uint32_t>(ThresholdKind::kF32))
    fail_damaged("%s: threshold_kind %" PRIu32 ", expected 0 to 2", where.c_str(), op.record.threshold_kind);
  if (!ops::has_type(op.traits().steps, model.operand(op).dtype)) return check_plain(model, op, where);
  for (size_t i = 0; i < op.steps.size(); ++i)
    check_step(model, op, op.steps[i], format_text("%s step %zu", where.c_str(), i));
  check_threshold(model, op, where);
}

}  // namespace phonebit::engine::loader
