#include "analysis/work.h"

#include <algorithm>

#include "loader/validate.h"
#include "ops/operators.h"
#include "types/fail.h"

namespace phonebit::engine::analysis {
namespace {

double taps(const loader::Op& op) { return 1.0 * op.record.kernel_h * op.record.kernel_w; }

/// Without the steps.
double main_work(const loader::Model& model, const loader::Op& op) {
  const ops::Operator& facts = ops::traits(op.kind);
  const loader::Tensor& in = model.operand(op);
  const loader::Tensor& out = model.output(op);
  const bool is_of_words = in.dtype == format::DataType::kBit;
  const double elements = static_cast<double>(out.elements());
  if (facts.is_product()) {
    const int depth = in.channels / static_cast<int>(op.record.groups);
    return elements * (is_of_words ? (depth + 31) / 32 : depth) +
           static_cast<double>(model.operand(op, 1).elements());
  }
  if (!facts.has_window()) return elements;
  if (facts.weights == ops::Weights::none) {
    const int groups = is_of_words ? out.words() : (out.channels + 15) / 16;
    return static_cast<double>(out.pixels()) * taps(op) * groups;
  }
  if (facts.weights != ops::Weights::filters)
    return static_cast<double>(out.pixels()) * taps(op) * (is_of_words ? 32 * out.words() : out.channels);
  const int channels = in.channels / static_cast<int>(op.record.groups);
  return elements * taps(op) * (is_of_words ? (channels + 31) / 32 : channels);
}

}  // namespace

double work(const loader::Model& model, const loader::Op& op) {
  const double elements = static_cast<double>(model.output(op).elements());
  double steps = 0.0;
  for (const format::StepRecord& step : op.steps) {
    const bool counts = loader::traits(step).form == ops::StepForm::count;
    steps +=
        counts ? static_cast<double>(model.constant(step.constant_a).count) / model.output(op).channels : 1.0;
  }
  return main_work(model, op) + elements * steps;
}

void check_work(const loader::Model& model, double max_work) {
  double total = 0.0, maximum = -1.0;
  size_t of_most = 0;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const double of_op = work(model, model.ops[i]);
    total += of_op;
    if (of_op > maximum) {
      maximum = of_op;
      of_most = i;
    }
  }
  if (total > max_work)
    fail(ErrorCode::format,
         "%s: the network, mostly by this op, takes %.3g operations, more than the limit of %.3g; raise "
         "Options::max_work if the model is trusted",
         loader::describe_op(model, of_most).c_str(), total, max_work);
}

}  // namespace phonebit::engine::analysis
