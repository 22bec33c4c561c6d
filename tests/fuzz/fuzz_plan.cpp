// Any parts as the plan of a network: they are refused with a message, or every element of its outputs is
// computed exactly once.
#include <fuzzer/FuzzedDataProvider.h>

#include <string>
#include <vector>

#include "analysis/op_tensors.h"
#include "analysis/plan_check.h"
#include "loader/loader.h"
#include "one_pass.h"
#include "types/error.h"

using namespace phonebit::engine;
using phonebit::fuzz::require;

namespace {

const std::vector<loader::Model>& models() {
  static const std::vector<loader::Model> all = [] {
    std::vector<loader::Model> loaded;
    for (const char* name : {"tiny_classifier", "residual_block_64", "pooled_bits_33", "float_layers",
                             "u8_first_layer_3_64", "selected_channels"})
      loaded.push_back(
          loader::load_model(loader::FileBytes::of_path(std::string(PHONEBIT_GOLDEN "/") + name + ".pbit")));
    return loaded;
  }();
  return all;
}

/// Each layer in a stage of its own, on one processor, or its rows or channels on both.
std::vector<PlannedPart> valid_parts(const loader::Model& model, FuzzedDataProvider& bytes) {
  std::vector<PlannedPart> parts;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const loader::Tensor& output = model.output(model.ops[i]);
    const int layer = static_cast<int>(i);
    const OutputPart whole{0, output.height, 0, output.channels};
    const int cut = bytes.ConsumeIntegralInRange(0, output.height);
    for (const OutputPart& part :
         {OutputPart{0, cut, 0, output.channels}, OutputPart{cut, whole.row_end, 0, output.channels}}) {
      if (part.row_begin < part.row_end)
        parts.push_back({layer, bytes.ConsumeBool() ? Processor::gpu : Processor::cpu, layer, part});
    }
  }
  return parts;
}

/// One field another number, or a part more or less.
void damage(std::vector<PlannedPart>& parts, FuzzedDataProvider& bytes) {
  if (parts.empty()) return;
  const auto place = bytes.ConsumeIntegralInRange<size_t>(0, parts.size() - 1);
  PlannedPart& planned = parts[place];
  OutputPart& part = planned.part;
  int* const fields[] = {&planned.stage, &planned.layer,      &part.row_begin,
                         &part.row_end,  &part.channel_begin, &part.channel_end};
  const int kind = bytes.ConsumeIntegralInRange(0, 4);
  if (kind == 0) {
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(place));
  } else if (kind == 1) {
    parts.push_back(planned);
  } else if (kind == 2) {
    planned.processor = bytes.ConsumeBool() ? Processor::gpu : Processor::cpu;
  } else {
    int& field = *bytes.PickValueInArray(fields);
    const int number = kind == 3 ? bytes.ConsumeIntegral<int>() : bytes.ConsumeIntegralInRange(-3, 3);
    field =
        kind == 3 ? number : static_cast<int>(static_cast<unsigned>(field) + static_cast<unsigned>(number));
  }
}

/// How often the plan computes each row and channel of a layer.
std::vector<int> counts(const loader::Tensor& tensor, int layer, const std::vector<PlannedPart>& parts) {
  std::vector<int> times(static_cast<size_t>(tensor.height) * static_cast<size_t>(tensor.channels));
  for (const auto& [stage, processor, of_layer, part] : parts) {
    if (of_layer != layer) continue;
    require(part.row_begin >= 0 && part.row_end <= tensor.height && part.channel_begin >= 0 &&
                part.channel_end <= tensor.channels,
            "parts lie in the layer's output");
    for (int row = part.row_begin; row < part.row_end; ++row)
      for (int channel = part.channel_begin; channel < part.channel_end; ++channel)
        ++times[static_cast<size_t>(row * tensor.channels + channel)];
  }
  return times;
}

void check_outputs(const loader::Model& model, const std::vector<PlannedPart>& parts) {
  for (size_t i = 0; i < model.ops.size(); ++i) {
    for (const int tensor : analysis::tensors_written(model.ops[i])) {
      for (const int output : model.outputs) {
        if (output != tensor) continue;
        for (const int times : counts(model.tensor(tensor), static_cast<int>(i), parts))
          require(times == 1, "outputs are computed exactly once");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const loader::Model& model = models()[bytes.ConsumeIntegralInRange<size_t>(0, models().size() - 1)];
  ExecutionPlan plan;
  plan.parts = valid_parts(model, bytes);
  for (int times = bytes.ConsumeIntegralInRange(0, 8); times > 0; --times) damage(plan.parts, bytes);
  try {
    analysis::check_plan(model, plan);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::input && *error.what() != '\0', "a refusal has a message");
    return 0;
  }
  check_outputs(model, plan.parts);
  return 0;
}
