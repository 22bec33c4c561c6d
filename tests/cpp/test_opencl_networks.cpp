// Whole networks on the first OpenCL device against the CPU backend: every tensor of every golden file, in
// batches, layer by layer and end to end, by replay and on device memory.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "check_error.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "opencl_device.h"
#include "subcases.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;

/// Bits and levels are equal; floats too, except after divisions that a device may round differently.
void expect_equal(const Content& expected, const Content& got, const std::vector<TensorInfo>& tensors,
                  bool is_exact_device, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == got[i]) continue;
    bool is_close = !is_exact_device && tensors[i].dtype == ElementType::f32;
    for (size_t at = 0; is_close && at < expected[i].size(); at += 4) {
      float a, b;
      std::memcpy(&a, expected[i].data() + at, sizeof a);
      std::memcpy(&b, got[i].data() + at, sizeof b);
      is_close = std::fabs(a - b) <= 1e-5f * std::fmax(1.0f, std::fabs(a));
    }
    CHECK_MESSAGE(is_close, what, ": tensor '", tensors[i].name, "' differs from the CPU's");
  }
}

void check_layers(Network& network, const Content& tensors, int batch, bool is_exact_device,
                  const std::string& name) {
  for (size_t layer = 0; layer < network.layers().size(); ++layer) {
    std::vector<InputBuffer> operands;
    for (const int tensor : network.layer_inputs(layer)) {
      const auto& bytes = tensors[static_cast<size_t>(tensor)];
      operands.push_back({bytes.data(), bytes.size()});
    }
    std::vector<TensorInfo> written;
    Content expected;
    for (const int tensor : network.layer_outputs(layer)) {
      written.push_back(network.tensors()[static_cast<size_t>(tensor)]);
      expected.push_back(tensors[static_cast<size_t>(tensor)]);
    }
    Content got = room_for(written, batch);
    network.run_op(layer, operands, outputs_of(got), batch);
    expect_equal(expected, got, written, is_exact_device, name + " alone");
  }
}

bool can(const GpuInfo& device, const std::string& what) {
  for (const auto& [name, has] : device.capabilities)
    if (name == what) return has;
  return false;
}

void check_network(const std::string& path, const Options& options, bool is_exact_device, bool can_replay) {
  const std::string name = std::filesystem::path(path).stem();
  Network cpu = Network::load(path), gpu = Network::load(path, options);
  CHECK_MESSAGE(gpu.device().rfind("gpu", 0) == 0, name, " runs on ", gpu.device());
  for (const std::string& warning : gpu.warnings()) FAIL_CHECK(name, ": ", warning);
  for (const int batch : {2, 1, 3}) {
    const Content inputs = random_inputs(cpu.inputs(), batch);
    Content expected = room_for(cpu.tensors(), batch), got = room_for(cpu.tensors(), batch);
    cpu.activations(inputs_of(inputs), outputs_of(expected), batch);
    gpu.activations(inputs_of(inputs), outputs_of(got), batch);
    expect_equal(expected, got, cpu.tensors(), is_exact_device, name);
    check_layers(gpu, expected, batch, is_exact_device, name);
    Content end = room_for(cpu.outputs(), batch), end_got = room_for(cpu.outputs(), batch);
    cpu.forward(inputs_of(inputs), outputs_of(end), batch);
    for (int inference = 0; inference < 2; ++inference) {  // the second replays what the first recorded
      end_got = room_for(cpu.outputs(), batch);
      gpu.forward(inputs_of(inputs), outputs_of(end_got), batch);
      expect_equal(end, end_got, cpu.outputs(), is_exact_device, name + " end to end");
    }
    CHECK_MESSAGE(gpu.startup().uses_command_buffer == can_replay, name, ": replay");
    for (const double time_ms : gpu.profile(inputs_of(inputs), batch, 1)) {
      CHECK_MESSAGE(time_ms >= 0.0, name, ": a layer's time");
      CHECK_MESSAGE(time_ms < 60000.0, name, ": a layer's time");
    }
  }
  const StartupInfo again = Network::load(path, options).startup();
  CHECK_MESSAGE(again.programs_built == 0, name, ": the second start builds nothing");
  CHECK_MESSAGE(again.self_tests_run == 0, name, ": the second start builds nothing");
}

/// With the minimum memory that lets the network load, a batch runs in several pieces.
void check_passes(const std::string& path, Options options) {
  const int batch = 400;  // weights take as much as some 60 images
  Network cpu = Network::load(path);
  const Content inputs = random_inputs(cpu.inputs(), batch);
  Content expected = room_for(cpu.outputs(), batch), got = room_for(cpu.outputs(), batch);
  cpu.forward(inputs_of(inputs), outputs_of(expected), batch);
  for (options.max_memory_bytes = 1024;; options.max_memory_bytes *= 2) {
    try {
      Network gpu = Network::load(path, options);
      gpu.forward(inputs_of(inputs), outputs_of(got), batch);
      CHECK(expected == got);
      return;
    } catch (const Error& error) {
      CHECK_MESSAGE(error.code() == ErrorCode::format, "a limit on memory: ", error.what());
      CHECK_MESSAGE(options.max_memory_bytes < (1u << 30), "a limit on memory: ", error.what());
      if (options.max_memory_bytes >= (1u << 30)) return;
    }
  }
}

/// One of them alone: --subcase=<name of the file>.
TEST_CASE("golden networks") {
  if (!has_opencl_device()) return;
  const GpuInfo device = gpu_devices("opencl")[0];
  INFO(device.name, " (", device.driver_version, ")");
  const bool is_exact_device = can(device, "exact_division") && can(device, "fused_multiply_add");
  const bool can_replay = can(device, "command_buffer");
  static const TemporaryFolder cache;
  Options options;
  options.device = "gpu";
  options.cache_directory = cache.path();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(PHONEBIT_SOURCE_DIR "/tests/golden/v1")) {
    if (entry.path().extension() == ".pbit") files.push_back(entry.path());
  }
  REQUIRE_FALSE(files.empty());
  const auto name_of = [](const std::filesystem::path& file) { return doctest::String(file.stem().c_str()); };
  for_each_subcase(files, name_of, [&](const std::filesystem::path& file) {
    check_network(file, options, is_exact_device, can_replay);
    if (file.stem() == "tiny_classifier") check_passes(file, options);
  });
}

}  // namespace
