// Networks whose layers are all cut in two, by rows and by channels, with one half on the first OpenCL device
// and one on the CPU: the bits are those of the CPU alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/op_part.h"
#include "check_error.h"
#include "engine/network.h"
#include "loader/loader.h"
#include "network_buffers.h"
#include "opencl_device.h"
#include "subcases.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using analysis::kChannelGrain;

enum class Cut { rows, channels };

/// The halves of a layer, or the layer whole where nothing cuts it; `cut` is the way that is preferred.
std::vector<OutputPart> halves_of(const loader::Model& model, const loader::Op& op, Cut cut) {
  const OutputPart whole = analysis::whole_part(model, op);
  // Whole words where there are several, so that both kinds of cuts occur.
  const int grain = whole.channel_end >= 64 ? 32 : kChannelGrain;
  const int row = whole.row_end / 2, channel = (whole.channel_end / 2 + grain - 1) / grain * grain;
  const bool has_rows = analysis::can_split_rows(model, op);
  const bool has_channels =
      analysis::can_split_channels(model, op) && channel > 0 && channel < whole.channel_end;
  OutputPart first = whole, second = whole;
  if (has_rows && (cut == Cut::rows || !has_channels)) {
    first.row_end = second.row_begin = row;
  } else if (has_channels) {
    first.channel_end = second.channel_begin = channel;
  } else {
    return {whole};
  }
  return {first, second};
}

/// Each layer is a stage. `first` has the first halves, and the first of the layers that cannot be cut; those
/// take turns.
ExecutionPlan plan_of(const loader::Model& model, Cut cut, Processor first) {
  const Processor second = first == Processor::cpu ? Processor::gpu : Processor::cpu;
  ExecutionPlan plan{"any", "user", 0.0, {}};
  int whole_layers = 0;
  for (int layer = 0; layer < static_cast<int>(model.ops.size()); ++layer) {
    const std::vector<OutputPart> halves = halves_of(model, model.ops[static_cast<size_t>(layer)], cut);
    if (halves.size() == 1) {
      plan.parts.push_back({layer, whole_layers++ % 2 == 0 ? first : second, layer, halves[0]});
    } else {
      plan.parts.push_back({layer, first, layer, halves[0]});
      plan.parts.push_back({layer, second, layer, halves[1]});
    }
  }
  return plan;
}

bool is_same(const PlannedPart& a, const PlannedPart& b) {
  return a.stage == b.stage && a.processor == b.processor && a.layer == b.layer && a.part == b.part;
}

/// Stages in which both processors compute parts of one layer.
int shared_layers(const ExecutionPlan& plan) {
  int count = 0;
  for (size_t i = 1; i < plan.parts.size(); ++i)
    count += plan.parts[i].layer == plan.parts[i - 1].layer &&
             plan.parts[i].processor != plan.parts[i - 1].processor;
  return count;
}

/// The network is on both processors as planned, now and not only when it was loaded.
void expect_plan_in_force(const Network& network, const ExecutionPlan& plan, const std::string& what) {
  const ExecutionPlan in_force = network.plan();
  bool is_equal = in_force.parts.size() == plan.parts.size();
  for (size_t i = 0; is_equal && i < plan.parts.size(); ++i)
    is_equal = is_same(in_force.parts[i], plan.parts[i]);
  CHECK_MESSAGE(is_equal, what, ": the plan in force is the one given");
  CHECK_MESSAGE(!network.coexec().is_on_cpu_alone, what, ": the GPU takes part");
  for (const std::string& warning : network.warnings()) FAIL_CHECK(what, ": ", warning);
}

constexpr int kBatch = 2;

/// What the CPU alone makes of random inputs.
struct Reference {
  explicit Reference(const std::string& path) {
    Network alone = Network::load(path);
    inputs = random_inputs(alone.inputs(), kBatch);
    tensors = room_for(alone.tensors(), kBatch), outputs = room_for(alone.outputs(), kBatch);
    alone.activations(inputs_of(inputs), outputs_of(tensors), kBatch);
    alone.forward(inputs_of(inputs), outputs_of(outputs), kBatch);
  }
  Content inputs, tensors, outputs;
};

void check_plan(const std::string& path, const Reference& alone, const Options& options,
                const std::string& what) {
  Network both = Network::load(path, options);
  expect_plan_in_force(both, *options.plan, what + ", loaded");
  Content tensors = room_for(both.tensors(), kBatch), outputs = room_for(both.outputs(), kBatch);
  both.activations(inputs_of(alone.inputs), outputs_of(tensors), kBatch);
  for (size_t i = 0; i < tensors.size(); ++i)
    CHECK_MESSAGE(tensors[i] == alone.tensors[i], what, ": tensor '", both.tensors()[i].name,
                  "' differs from the CPU's");
  both.forward(inputs_of(alone.inputs), outputs_of(outputs), kBatch);
  CHECK_MESSAGE(outputs == alone.outputs, what, ": the outputs differ from the CPU's");
  expect_plan_in_force(both, *options.plan, what + ", run");
}

/// Returns how many layers were shared.
int check_network(const std::string& path, Options options) {
  const loader::Model model = loader::load_model(loader::FileBytes::of_path(path));
  const Reference alone(path);
  int shared = 0;
  for (const Cut cut : {Cut::rows, Cut::channels}) {
    for (const Processor first : {Processor::gpu, Processor::cpu}) {
      const std::string what = std::filesystem::path(path).stem().string() +
                               (cut == Cut::rows ? " cut by rows, " : " cut by channels, ") +
                               (first == Processor::gpu ? "the GPU first" : "the CPU first");
      options.plan = plan_of(model, cut, first);
      shared += shared_layers(*options.plan);
      check_plan(path, alone, options, what);
    }
  }
  return shared;
}

/// Of the golden files' networks, or of the file that PHONEBIT_TEST_NETWORK names. One of the former alone:
/// --subcase=<network>. Kernels are kept in PHONEBIT_CACHE_DIR, or in a folder of this process.
TEST_CASE("networks of which each layer is shared") {
  if (!has_opencl_device()) return;
  INFO(gpu_devices()[0].name);
  static const TemporaryFolder own;
  const char* const shared = std::getenv("PHONEBIT_CACHE_DIR");
  Options options;
  options.device = "gpu+cpu";
  options.threads = 2;
  options.cache_directory = shared != nullptr ? shared : own.path();
  if (const char* const path = std::getenv("PHONEBIT_TEST_NETWORK")) {
    CHECK_MESSAGE(check_network(path, options) > 0, "no layer can be cut");
    return;
  }
  const char* const networks[] = {"tiny_classifier",
                                  "residual_block_64",
                                  "pooled_bits_33",
                                  "u8_first_layer_3_64",
                                  "binary_conv_threshold_300_9_pad0",
                                  "float_layers"};
  int count = 0;
  const auto name_of = [](const char* network) { return network; };
  for_each_subcase(networks, name_of, [&](const std::string& network) {
    ++count;
    const int shared = check_network(PHONEBIT_SOURCE_DIR "/tests/golden/v1/" + network + ".pbit", options);
    CHECK_MESSAGE(shared > 0, "no layer can be cut");
    MESSAGE(network, ": ", shared, " layers shared");
  });
  CHECK(count == 1);  // doctest runs this function once for each subcase
}

/// With cl_khr_fp16 alone: PHONEBIT_TEST_HALF says that the device must have it, as Mesa's rusticl does.
TEST_CASE("float convolutions are computed in half arithmetic") {
  if (!has_opencl_device()) return;
  const bool has_half = gpu_devices()[0].has_half;
  CHECK((has_half || std::getenv("PHONEBIT_TEST_HALF") == nullptr));
  if (!has_half) return;
  static const TemporaryFolder own;
  const std::string path = PHONEBIT_SOURCE_DIR "/tests/golden/v1/half_weights.pbit";
  Network alone = Network::load(path);
  const Content inputs = random_inputs(alone.inputs(), kBatch);
  Content expected = room_for(alone.outputs(), kBatch), found = expected;
  alone.forward(inputs_of(inputs), outputs_of(expected), kBatch);
  Options options;
  options.device = "gpu";
  options.precision = Precision::f16;
  options.tuning = "conv2d_f32 * * * * conv2d_f32 ARITHMETIC=1 TILE_FILTERS=16\n";
  options.cache_directory = own.path();
  Network network = Network::load(path, options);
  for (const std::string& warning : network.warnings()) FAIL_CHECK(warning);
  const std::vector<LayerInfo> layers = network.layers();
  CHECK(std::count_if(layers.begin(), layers.end(), [](const LayerInfo& layer) {
          return layer.kernel.find("ARITHMETIC=1") != std::string::npos;
        }) > 0);
  network.forward(inputs_of(inputs), outputs_of(found), kBatch);
  CHECK(found != expected);  // halves round
  std::vector<float> values(expected[0].size() / sizeof(float)), halves(values);
  std::memcpy(values.data(), expected[0].data(), expected[0].size());
  std::memcpy(halves.data(), found[0].data(), found[0].size());
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::fabs(values[i]));
    difference = std::max(difference, std::fabs(values[i] - halves[i]));
  }
  CHECK(difference < largest / 128.0f);
}

}  // namespace
