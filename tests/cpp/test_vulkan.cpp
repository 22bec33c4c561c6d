// Golden networks on a Vulkan device against the CPU backend: batches, replayed command buffers, times of layers.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "check_error.h"
#include "cpu/cpu_backend.h"
#include "gpu/gpu_backend.h"
#include "loader/loader.h"
#include "network_buffers.h"
#include "subcases.h"
#include "temporary_folder.h"
#include "types/fail.h"
#include "vulkan/device.h"
#include "vulkan/module_library.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;

/// False without a device, but where PHONEBIT_TEST_VULKAN says that there is one.
bool can_test() {
  if (!vulkan::devices().empty()) return true;
  REQUIRE(std::getenv("PHONEBIT_TEST_VULKAN") == nullptr);
  MESSAGE("no Vulkan device: not tested");
  return false;
}

/// A tensor's buffers for a batch.
Content room_for(const loader::Model& model, const std::vector<int>& tensors, int batch) {
  Content content;
  for (const int tensor : tensors)
    content.emplace_back(model.tensor(tensor).bytes() * static_cast<size_t>(batch));
  return content;
}

/// Levels, or eighths so that float sums are exact.
Content random_inputs(const loader::Model& model, int batch) {
  std::mt19937 random(5);
  Content content = room_for(model, model.inputs, batch);
  for (size_t i = 0; i < content.size(); ++i) {
    const bool is_float = model.tensor(model.inputs[i]).dtype == format::DataType::kF32;
    for (size_t at = 0; at < content[i].size(); at += is_float ? 4 : 1) {
      const float value = static_cast<float>(static_cast<int>(random() % 65) - 32) / 8;
      if (is_float)
        std::memcpy(content[i].data() + at, &value, sizeof value);
      else
        content[i][at] = static_cast<std::byte>(random() & 255);
    }
  }
  return content;
}

void check_network(const std::string& path, const std::shared_ptr<vulkan::Device>& device,
                   const Options& options) {
  const loader::Model model = loader::load_model(loader::FileBytes::of_path(path));
  const auto pool = std::make_shared<threads::ThreadPool>(1);
  cpu::CpuBackend cpu(model, *cpu::select_isa(nullptr), options, pool);
  gpu::GpuBackend backend(model, device, "gpu:0 " + device->facts().name, pool, options);
  for (const std::string& warning : backend.warnings()) FAIL_CHECK(warning);
  for (const int batch : {2, 1, 3}) {
    const Content inputs = random_inputs(model, batch);
    Content expected = room_for(model, model.outputs, batch);
    cpu.forward(inputs_of(inputs), outputs_of(expected), batch, Cancellation(), nullptr);
    for (int inference = 0; inference < 2; ++inference) {  // the second replays what the first recorded
      Content got = room_for(model, model.outputs, batch);
      backend.forward(inputs_of(inputs), outputs_of(got), batch, Cancellation(), nullptr);
      CHECK(expected == got);
    }
    std::vector<double> milliseconds(model.ops.size());
    Content got = room_for(model, model.outputs, batch);
    backend.forward(inputs_of(inputs), outputs_of(got), batch, Cancellation(), &milliseconds);
    CHECK(expected == got);
    for (const double time_ms : milliseconds) CHECK(time_ms >= 0.0);
  }
  CHECK(backend.startup().uses_command_buffer);
  CHECK(backend.warnings().empty());
}

/// One of them alone: --subcase=<name of the file>.
TEST_CASE("golden networks") {
  if (!can_test()) return;
  static const auto device = std::make_shared<vulkan::Device>(vulkan::devices()[0]);
  INFO(device->facts().key());
  static const TemporaryFolder cache;
  Options options;
  options.max_memory_bytes = uint64_t{1} << 30;
  options.cache_directory = cache.path();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(PHONEBIT_SOURCE_DIR "/tests/golden/v1")) {
    if (entry.path().extension() == ".pbit") files.push_back(entry.path());
  }
  REQUIRE_FALSE(files.empty());
  const auto name_of = [](const std::filesystem::path& file) { return doctest::String(file.stem().c_str()); };
  for_each_subcase(files, name_of,
                   [&](const std::filesystem::path& file) { check_network(file, device, options); });
}

TEST_CASE("a device without what kernels need is refused") {
  if (!can_test()) return;
  vulkan::PhysicalDevice physical = vulkan::devices()[0];
  physical.features.variable_pointers.variablePointersStorageBuffer = 0;
  check_error(ErrorCode::device, {physical.name.c_str(), "lacks the feature variablePointersStorageBuffer"},
              "a device without variable pointers", [&] { vulkan::LogicalDevice{physical}; });
}

TEST_CASE("a kernel without a module is not tried") {
  const vulkan::ModuleLibrary& library = vulkan::module_library();
  CHECK(library.has({"bgemv", {}}));
  CHECK(library.has({"bgemv", {{"VECTOR_WORDS", 1}}}));
  CHECK(library.has({"bgemv", {{"TILE_FILTERS", 2}, {"GROUP_SIZE", 128}}}));
  CHECK_FALSE(library.has({"bgemv", {{"TILE_FILTERS", 2}, {"GROUP_SIZE", 512}}}));
  CHECK_FALSE(library.has({"conv2d_f32_staged", {}}));
}

/// Words as the bytes of a file.
std::string bytes_of(const std::vector<uint32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
}

TEST_CASE("what is no module of one kernel is refused") {
  const std::vector<uint32_t> header = {0x07230203, 0x00010300, 0, 10, 0};
  const auto with = [&](std::vector<uint32_t> more) {
    std::vector<uint32_t> words = header;
    words.insert(words.end(), more.begin(), more.end());
    return bytes_of(words);
  };
  const auto refuses = [](const std::string& binary, const char* reason) {
    check_error(ErrorCode::device, {"SPIR-V", reason}, reason, [&] { vulkan::read_module(binary); });
  };
  refuses("", "0 bytes are no module");
  refuses("phonebit", "8 bytes are no module");
  refuses(bytes_of(header) + "a", "21 bytes are no module");
  refuses(bytes_of(header), "describes no kernel");
  refuses(with({0}), "the instruction at word 5 has a wrong length");
  refuses(with({2u << 16 | 7}), "the instruction at word 5 has a wrong length");
  refuses(with({1u << 16 | 7}), "an instruction is too short");  // a string without a name
  // NonSemantic.ClspvReflection as set 3, then an argument whose place is no constant.
  const std::string set = std::string("NonSemantic.ClspvReflection.5") + std::string(3, '\0');
  std::vector<uint32_t> import(set.size() / sizeof(uint32_t));
  std::memcpy(import.data(), set.data(), set.size());
  import.insert(import.begin(), {static_cast<uint32_t>(import.size() + 2) << 16 | 11, 3});
  const auto reflects = [&](std::vector<uint32_t> instruction) {
    std::vector<uint32_t> words = import;
    words.push_back(static_cast<uint32_t>(instruction.size() + 1) << 16 | 12);
    words.insert(words.end(), instruction.begin(), instruction.end());
    return with(words);
  };
  refuses(reflects({1, 2, 3, 3, 4, 5, 6, 7}), "an argument's place is no constant");
  refuses(reflects({1, 2, 3, 3, 4}), "an instruction is too short");
  refuses(reflects({1, 2, 3, 99, 4}), "ClspvReflection 99");
}

}  // namespace
