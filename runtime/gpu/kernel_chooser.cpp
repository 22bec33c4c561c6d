#include "gpu/kernel_chooser.h"

#include <algorithm>

#include "analysis/conv_shape.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

using loader::Model;
using loader::Op;

namespace {

/// In the order of ops::kOperators.
constexpr const OperatorKernels* kKernels[] = {
#define PHONEBIT_KERNELS(number, kind, ...) &KernelsOf<format::OpKind::kind>::all,
    PHONEBIT_OPERATORS(PHONEBIT_KERNELS)
#undef PHONEBIT_KERNELS
};

}  // namespace

const OpKernels& op_kernels(const Model& model, const Op& op) {
  return kKernels[static_cast<size_t>(op.kind) - 1]->choose(model, op);
}

LayerFacts layer_facts(const Model& model, const Op& op) {
  LayerFacts facts{analysis::conv_shape(model, op),
                   static_cast<int>(op.record.groups),
                   op.record.bits_output >= 0,
                   op.threshold_kind() == format::ThresholdKind::kI32,
                   {}};
  if (op.record.weights >= 0) {
    const format::DataType stored = model.constant(op.record.weights).dtype;
    facts.has_small_weights = stored == format::DataType::kF16 || stored == format::DataType::kI8;
  }
  for (const int operand : op.operands) facts.operand_channels.push_back(model.tensor(operand).channels);
  return facts;
}

bool can_run(const Model& model, const Op& op, const Target& target, const KernelChoice& choice) {
  return can_run(*op_kernels(model, op).family, layer_facts(model, op), target, choice);
}

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

KernelChoice KernelChooser::choose(const Model& model, const Op& op, std::optional<int> part_channel,
                                   const std::function<void(const KernelChoice&)>& build) {
  const KernelFamily& family = *op_kernels(model, op).family;
  std::string reasons;
  for (const KernelChoice& choice : supported_choices(family, layer_facts(model, op), target_, table_)) {
    if (!device_->has_program(choice) || (part_channel && !supports_from(choice, *part_channel))) continue;
    try {
      const SelfTestResult tested = self_test_.result(family.op, choice, part_channel.has_value());
      if (!tested.passed) {
        const std::string warning = format_text(
            "kernel %s failed the self-test on %s and is disabled; the next one in the table serves: %s",
            choice.text().c_str(), device_->facts().key().c_str(), tested.detail.c_str());
        if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
          warnings_.push_back(warning);
        reasons += "; " + choice.text() + " failed the self-test: " + tested.detail;
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
  const std::string part = part_channel ? format_text(" for a part from channel %d on", *part_channel) : "";
  fail(ErrorCode::device, "layer '%s': no kernel serves it%s on %s%s; use device 'cpu'", op.name.c_str(),
       part.c_str(), device_->facts().name.c_str(), reasons.c_str());
}

}  // namespace phonebit::engine::gpu
