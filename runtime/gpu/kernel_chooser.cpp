#include "gpu/kernel_chooser.h"

#include <algorithm>

#include "types/fail.h"

namespace phonebit::engine::gpu {

using loader::Model;
using loader::Op;

TuningTable tuning_table(const Options& options) {
  TuningTable table = TuningTable::parse(built_in_tuning_table(), "tuning.table");
  if (!options.tuning.empty()) table.prepend(TuningTable::parse(options.tuning, "Options::tuning"));
  return table;
}

KernelChooser::KernelChooser(std::shared_ptr<Device> device, ProgramCache& programs, const Options& options)
    : device_(std::move(device)),
      target_{device_->facts(), options.precision == Precision::exact},
      table_(tuning_table(options)),
      self_test_(device_, programs, cache_directory(options.cache_directory)) {}

KernelChoice KernelChooser::choose(const Model& model, const Op& op, const Wish& wish,
                                   const std::function<void(const KernelChoice&)>& build) {
  const std::vector<KernelChoice> choices =
      serving_choices(*op_kernels(model, op).family, layer_facts(model, op), target_, table_);
  std::string reasons;
  for (const KernelChoice& choice : choices) {
    if (wish.has_channel_parts && !serves_from(choice, wish.first_channel)) continue;
    try {
      const std::string failure = failed_self_test(model, op, choice, wish.has_channel_parts);
      if (!failure.empty()) {
        reasons += "; " + choice.text() + " failed the self-test: " + failure;
        continue;
      }
      build(choice);
      return choice;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::device) throw;
      warnings_.push_back(format_text("layer '%s': kernel %s is not used: %s", op.name.c_str(),
                                      choice.text().c_str(), error.what()));
      reasons += "; " + choice.text() + ": " + error.what();
    }
  }
  const std::string part =
      wish.has_channel_parts ? format_text(" for a part from channel %d on", wish.first_channel) : "";
  fail(ErrorCode::device, "layer '%s': no kernel serves it%s on %s%s; use device 'cpu'", op.name.c_str(),
       part.c_str(), device_->facts().name.c_str(), reasons.c_str());
}

/// Why the choice may not serve, or empty. What fails is a warning once.
std::string KernelChooser::failed_self_test(const Model& model, const Op& op, const KernelChoice& choice,
                                            bool has_channel_parts) {
  const SelfTestResult result =
      self_test_.result(op_kernels(model, op).family->op, choice, has_channel_parts);
  if (result.passed) return "";
  const std::string warning = format_text(
      "kernel %s failed the self-test on %s and is disabled; the next one in the table serves: %s",
      choice.text().c_str(), device_->facts().key().c_str(), result.detail.c_str());
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) warnings_.push_back(warning);
  return result.detail;
}

}  // namespace phonebit::engine::gpu
