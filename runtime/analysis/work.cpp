#include "analysis/work.h"

#include <algorithm>

#include "loader/validate.h"
#include "ops/operators.h"
#include "types/fail.h"

namespace phonebit::engine::analysis {
namespace {

/// A tenth of a second of a slow processor.
constexpr double kLargestRowWork = 1e8;

double taps(const loader::Op& op) { return 1.0 * op.record.kernel_h * op.record.kernel_w; }

bool is_pooling(const loader::Op& op) {
  const ops::Operator& facts = ops::traits(op.kind);
  return facts.has_window() && facts.weights == ops::Weights::none;
}

void fail_too_much(const loader::Model& model, size_t index, const char* what, double found, double limit) {
  fail(ErrorCode::format,
       "%s: %s takes %.3g operations, more than the limit of %.3g; raise Options::max_work if the model is "
       "trusted",
       loader::describe_op(model, index).c_str(), what, found, limit);
}

}  // namespace

double work(const loader::Model& model, const loader::Op& op) {
  const ops::Operator& facts = ops::traits(op.kind);
  const loader::Tensor& in = model.operand(op);
  const loader::Tensor& out = model.output(op);
  const bool is_of_words = in.dtype == format::DataType::kBit;
  const double elements = static_cast<double>(out.elements());
  if (!facts.has_window()) return elements;
  if (facts.weights == ops::Weights::none) {
    const int groups = is_of_words ? out.words() : (out.channels + 15) / 16;
    return static_cast<double>(out.pixels()) * taps(op) * groups;
  }
  if (facts.weights != ops::Weights::filters) return elements * taps(op);
  const int channels = in.channels / static_cast<int>(op.record.groups);
  return elements * taps(op) * (is_of_words ? (channels + 31) / 32 : channels);
}

void check_work(const loader::Model& model, double max_work) {
  const double max_row_work = std::max(kLargestRowWork, 1e-6 * max_work);
  double total = 0.0, most = -1.0;
  size_t of_most = 0;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const double of_op = work(model, model.ops[i]);
    const double of_row = of_op / model.output(model.ops[i]).height;
    if (is_pooling(model.ops[i]) && of_row > max_row_work)
      fail_too_much(model, i, "one output row", of_row, max_row_work);
    total += of_op;
    if (of_op > most) {
      most = of_op;
      of_most = i;
    }
  }
  if (total > max_work) fail_too_much(model, of_most, "the network, mostly by this op,", total, max_work);
}

}  // namespace phonebit::engine::analysis
