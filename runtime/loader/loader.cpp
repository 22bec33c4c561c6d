#include "loader/loader.h"

#include <utility>

#include "loader/sections.h"
#include "loader/validate.h"
#include "types/cancellation.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

/// Which tensors hold a value so far; index is the tensor's.
class WriteOrder {
 public:
  explicit WriteOrder(const Model& model) : model_(model), is_written_(model.tensors.size(), false) {}

  void write(int tensor, const char* writer) {
    if (is_written_[static_cast<size_t>(tensor)])
      fail_damaged("%s writes tensor '%s' a second time", writer, model_.tensor(tensor).name.c_str());
    is_written_[static_cast<size_t>(tensor)] = true;
  }

  void read(int tensor, const char* reader) const {
    if (!is_written_[static_cast<size_t>(tensor)])
      fail_damaged("%s reads tensor '%s' before it is written", reader, model_.tensor(tensor).name.c_str());
  }

  void finish() const {
    for (size_t i = 0; i < is_written_.size(); ++i) {
      if (!is_written_[i]) fail_damaged("tensor '%s' is never written", model_.tensors[i].name.c_str());
    }
  }

 private:
  const Model& model_;
  std::vector<bool> is_written_;
};

}  // namespace

void validate_order(const Model& model) {
  WriteOrder order(model);
  for (const int input : model.inputs) order.write(input, "INPUTS");
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    const std::string where = describe_op(model, i);
    for (const int operand : op.operands) order.read(operand, where.c_str());
    for (const format::StepRecord& step : op.steps) {
      if (traits(step).reads_tensor()) order.read(step.tensor, where.c_str());
    }
    for (const int output : op.outputs()) order.write(output, where.c_str());
  }
  order.finish();
}

Model load_model(FileBytes file) {
  Model model;
  model.file = std::move(file);
  const Sections sections = read_sections(model.file.data(), model.file.size());
  read_tables(sections, model);
  read_preprocessing(sections, model);
  read_ops(sections, model);
  ContentChecks checks;
  const Cancellation cancellation;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    cancellation.check();
    validate_op(model, i, checks);
  }
  validate_order(model);
  read_plans(sections, model);
  return model;
}

}  // namespace phonebit::engine::loader
