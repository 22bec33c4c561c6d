// Which kind of op is served by which family of kernels.
#include "analysis/conv_shape.h"
#include "gpu/layer.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

using loader::Model;
using loader::Op;

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

}  // namespace phonebit::engine::gpu
