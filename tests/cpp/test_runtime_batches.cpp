// Batches on the CPU: images side by side have the bits that each has by itself.
#include <cstring>
#include <filesystem>
#include <vector>

#include "check_error.h"
#include "engine/network.h"
#include "network_buffers.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;

constexpr int kThreads = 3, kImages = 8;  // two rounds side by side, and two images that are left

Options threads(int count) {
  Options options;
  options.threads = count;
  return options;
}

/// Of each image by itself, on one thread.
Content one_by_one(const std::string& path, const Content& inputs) {
  Network network = Network::load(path, threads(1));
  Content all = room_for(network.outputs(), kImages);
  for (size_t image = 0; image < kImages; ++image) {
    std::vector<InputBuffer> in;
    for (const auto& bytes : inputs)
      in.push_back({bytes.data() + bytes.size() / kImages * image, bytes.size() / kImages});
    std::vector<OutputBuffer> out;
    for (auto& bytes : all)
      out.push_back({bytes.data() + bytes.size() / kImages * image, bytes.size() / kImages});
    network.forward(in, out, 1);
  }
  return all;
}

TEST_CASE("images side by side") {
  for (const auto& entry : std::filesystem::directory_iterator(PHONEBIT_SOURCE_DIR "/tests/golden/v1")) {
    if (entry.path().extension() != ".pbit") continue;
    const std::string path = entry.path();
    CAPTURE(path);
    Network network = Network::load(path, threads(kThreads));
    const Content inputs = random_inputs(network.inputs(), kImages);
    const Content expected = one_by_one(path, inputs);
    for (int inference = 0; inference < 3; ++inference) {
      Content got = room_for(network.outputs(), kImages);
      network.forward(inputs_of(inputs), outputs_of(got), kImages);
      CHECK(got == expected);
    }
  }
}

/// From the minimum memory with which the network loads: there is none for a copy of its activations per thread.
TEST_CASE("a batch within a limit on memory") {
  const std::string path = PHONEBIT_SOURCE_DIR "/tests/golden/v1/tiny_classifier.pbit";
  Options options = threads(kThreads);
  int runs = 0;
  for (options.max_memory_bytes = 1024; runs < 4; options.max_memory_bytes += options.max_memory_bytes / 4) {
    try {
      Network network = Network::load(path, options);
      const Content inputs = random_inputs(network.inputs(), kImages);
      Content got = room_for(network.outputs(), kImages);
      network.forward(inputs_of(inputs), outputs_of(got), kImages);
      CHECK(got == one_by_one(path, inputs));
      ++runs;
    } catch (const Error& error) {
      REQUIRE(runs == 0);
      REQUIRE(error.code() == ErrorCode::format);
      REQUIRE(options.max_memory_bytes < 1u << 30);
    }
  }
}

}  // namespace
