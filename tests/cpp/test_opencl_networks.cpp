// Whole networks on the first OpenCL device against the CPU backend: every tensor of every golden file, in
// batches, layer by layer and end to end, by replay and on device memory. Passes without a device.
//
//   test_opencl_networks FOLDER [part of a file's name]
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "claims.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "network_buffers.h"

namespace {

using phonebit::engine::ElementType;
using phonebit::engine::InputBuffer;
using phonebit::engine::Network;
using phonebit::engine::Options;
using phonebit::engine::TensorInfo;
using phonebit::engine::test::Content;
using phonebit::engine::test::inputs_of;
using phonebit::engine::test::outputs_of;
using phonebit::engine::test::random_inputs;
using phonebit::engine::test::room_for;

/// Bits and levels are equal; floats too, except behind divisions that a device may round differently.
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
    expect(is_close, what + ": tensor '" + tensors[i].name + "' differs from the CPU's");
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

void check_network(const std::string& path, const Options& options, bool is_exact_device) {
  const std::string name = std::filesystem::path(path).stem();
  Network cpu = Network::load(path), gpu = Network::load(path, options);
  expect(gpu.device().rfind("gpu", 0) == 0, name + " runs on " + gpu.device());
  for (const std::string& warning : gpu.warnings()) expect(false, name + ": " + warning);
  for (const int batch : {2, 1, 3}) {
    const Content inputs = random_inputs(cpu.inputs(), batch);
    Content expected = room_for(cpu.tensors(), batch), got = room_for(cpu.tensors(), batch);
    cpu.activations(inputs_of(inputs), outputs_of(expected), batch);
    gpu.activations(inputs_of(inputs), outputs_of(got), batch);
    expect_equal(expected, got, cpu.tensors(), is_exact_device, name);
    check_layers(gpu, expected, batch, is_exact_device, name);
    Content end = room_for(cpu.outputs(), batch), end_got = room_for(cpu.outputs(), batch);
    cpu.forward(inputs_of(inputs), outputs_of(end), batch);
    for (int pass = 0; pass < 2; ++pass) {  // the second replays what the first recorded
      end_got = room_for(cpu.outputs(), batch);
      gpu.forward(inputs_of(inputs), outputs_of(end_got), batch);
      expect_equal(end, end_got, cpu.outputs(), is_exact_device, name + " end to end");
    }
    for (const double time_ms : gpu.profile(inputs_of(inputs), batch, 1))
      expect(time_ms >= 0.0 && time_ms < 60000.0, name + ": a layer's time");
  }
  const phonebit::engine::StartupInfo again = Network::load(path, options).startup();
  expect(again.programs_built == 0 && again.self_tests_run == 0, name + ": the second start builds nothing");
}

/// With the least memory that lets the network load, a batch runs in several passes.
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
      expect(expected == got, "passes over parts of a batch");
      return;
    } catch (const phonebit::engine::Error& error) {
      expect(error.code() == phonebit::engine::ErrorCode::format && options.max_memory_bytes < (1u << 30),
             std::string("a limit on memory: ") + error.what());
      if (options.max_memory_bytes >= (1u << 30)) return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: test_opencl_networks FOLDER [part of a file's name]\n");
    return 2;
  }
  if (phonebit::engine::opencl_devices().empty()) {
    std::printf("skipped: no OpenCL device (%s)\n", phonebit::engine::opencl_error().c_str());
    return 0;
  }
  const phonebit::engine::OpenClDeviceInfo device = phonebit::engine::opencl_devices()[0];
  bool is_exact_device = true;
  for (const auto& [name, has] : device.capabilities)
    if ((name == "exact_division" || name == "fused_multiply_add") && !has) is_exact_device = false;
  Options options;
  options.device = "gpu";
  options.cache_directory =
      (std::filesystem::temp_directory_path() / ("phonebit_networks_" + std::to_string(::getpid()))).string();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const std::string path = entry.path();
    if (entry.path().extension() != ".pbit" || (argc > 2 && path.find(argv[2]) == std::string::npos))
      continue;
    try {
      check_network(path, options, is_exact_device);
      if (path.find("tiny_classifier") != std::string::npos) check_passes(path, options);
    } catch (const phonebit::engine::Error& error) {
      expect(false, path + ": " + error.what());
    }
    ++files;
  }
  std::filesystem::remove_all(options.cache_directory);
  expect(files > 0, std::string("there are .pbit files in ") + argv[1]);
  std::printf("%d networks on %s (%s), %d failures\n", files, device.name.c_str(),
              device.driver_version.c_str(), failures);
  return failures == 0 ? 0 : 1;
}
