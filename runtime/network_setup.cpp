#include "network_setup.h"

#include <cstdlib>

#include "fail.h"
#include "threads/thread_pool.h"

#ifndef PHONEBIT_VERSION
#error "the build defines PHONEBIT_VERSION"
#endif

namespace phonebit {
namespace {

using format::DataType;
using format::OpKind;
using format::StepKind;

constexpr int kMaxThreads = 1024;

ElementType element_type(DataType dtype) {
  return dtype == DataType::kBit  ? ElementType::bit
         : dtype == DataType::kU8 ? ElementType::u8
                                  : ElementType::f32;
}

int64_t constant_bytes(const loader::Model& model, const loader::Op& op) {
  int64_t elements = 0;
  const auto add = [&](int constant) {
    if (constant >= 0) elements += static_cast<int64_t>(model.constant(constant).count);
  };
  add(op.record.weights);
  add(op.record.threshold);
  add(op.record.flip_mask);
  for (const format::StepRecord& step : op.steps) {
    add(step.constant_a);
    add(step.constant_b);
  }
  return 4 * elements;
}

std::string isa_names() {
  std::string names;
  for (const IsaInfo& isa : instruction_sets()) {
    if (!names.empty()) names += ", ";
    names += isa.name;
    if (!isa.supported) names += " (not on this machine)";
  }
  return names;
}

}  // namespace

const cpu::Isa& choose_isa(const std::string& name) {
  const char* variable = std::getenv("PHONEBIT_CPU");
  const bool is_from_variable = name.empty() && variable != nullptr;
  const std::string wanted = is_from_variable ? variable : name;
  const cpu::Isa* isa = cpu::select_isa(wanted.empty() ? nullptr : wanted.c_str());
  if (isa == nullptr)
    fail(ErrorCode::device,
         "%sinstruction set '%s' is unknown or not supported by this machine; choose one of: %s",
         is_from_variable ? "PHONEBIT_CPU: " : "", wanted.c_str(), isa_names().c_str());
  return *isa;
}

int choose_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    fail(ErrorCode::input, "threads: got %d, expected 0 (all processors) to %d", threads, kMaxThreads);
  return threads > 0 ? threads : threads::available_processors();
}

TensorInfo describe_tensor(const loader::Tensor& tensor) {
  return {tensor.name, element_type(tensor.dtype), tensor.height, tensor.width, tensor.channels};
}

LayerInfo describe_layer(const loader::Model& model, const loader::Op& op) {
  LayerInfo info;
  info.name = op.name;
  info.kind = loader::name_of(op.kind);
  info.macs = model.macs(op);
  info.binary = op.kind == OpKind::kBinaryConv2d || op.kind == OpKind::kBinaryDepthwiseConv2d;
  info.weight_bytes = constant_bytes(model, op);
  for (const int tensor : tensors_read(op)) info.inputs.push_back(model.tensor(tensor).name);
  for (const int tensor : tensors_written(op)) info.outputs.push_back(model.tensor(tensor).name);
  return info;
}

std::vector<int> tensors_read(const loader::Op& op) {
  std::vector<int> result = op.operands;
  for (size_t i = 0; i < op.steps.size(); ++i) {
    if (op.step_kind(i) == StepKind::kAdd || op.step_kind(i) == StepKind::kMultiply)
      result.push_back(op.steps[i].tensor);
  }
  return result;
}

std::vector<int> tensors_written(const loader::Op& op) {
  std::vector<int> result;
  for (const int tensor : {op.record.value_output, op.record.bits_output}) {
    if (tensor >= 0) result.push_back(tensor);
  }
  return result;
}

std::vector<IsaInfo> instruction_sets() {
  std::vector<IsaInfo> result;
  for (const cpu::Isa* const* isa = cpu::all_isas(); *isa != nullptr; ++isa)
    result.push_back({(*isa)->name, (*isa)->features, (*isa)->supported()});
  return result;
}

const char* version() { return PHONEBIT_VERSION; }

}  // namespace phonebit
