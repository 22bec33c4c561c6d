// No file makes the runtime crash: damaged ones are refused with Error(format), and what is accepted runs.
// Meant to run under AddressSanitizer as well. PHONEBIT_TEST_MUTATIONS and PHONEBIT_TEST_STRIDE make it
// shorter; PHONEBIT_TEST_FILE names a .pbit file that is damaged in the built-in model's place.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "doctest_strings.h"
#include "engine/network.h"
#include "loader/loader.h"
#include "parameters.h"
#include "temporary_folder.h"
#include "test_runtime_model.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;

Bytes model_to_damage() {
  const char* const path = std::getenv("PHONEBIT_TEST_FILE");
  if (path == nullptr) return small_model();
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

const std::string& folder() {
  static const TemporaryFolder own;
  return own.path();
}

std::string store(const Bytes& bytes) {
  const std::string path = folder() + "/model.pbit";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void run(Network& network) {
  std::vector<std::vector<float>> memory;  // float: aligned
  const auto allocate = [&](const TensorInfo& tensor) {
    memory.emplace_back(tensor.bytes() / sizeof(float) + 1);
    return memory.back().data();
  };
  std::vector<InputBuffer> inputs;
  std::vector<OutputBuffer> outputs;
  for (const auto& tensor : network.inputs()) inputs.push_back({allocate(tensor), tensor.bytes()});
  for (const auto& tensor : network.outputs()) outputs.push_back({allocate(tensor), tensor.bytes()});
  network.forward(inputs, outputs);
}

/// What happens with a network: "" when it runs, else the text of the error.
template <typename Load>
std::string outcome_of(const Load& load, ErrorCode expected_code, const std::string& what) {
  try {
    Options options;
    options.threads = 1;
    options.max_memory_bytes = uint64_t{64} << 20;
    Network network = load(options);
    run(network);
    return "";
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == expected_code, what, ": the code of '", error.what(), "'");
    return error.what();
  }
}

std::string outcome(const std::string& path, ErrorCode expected_code, const std::string& what) {
  return outcome_of([&](const Options& options) { return Network::load(path, options); }, expected_code,
                    what);
}

/// Without a file: most of the time of damaging thousands would go into writing them.
std::string outcome(const Bytes& bytes, const std::string& what) {
  return outcome_of(
      [&](const Options& options) { return Network::load_memory(bytes.data(), bytes.size(), options); },
      ErrorCode::format, what);
}

TEST_CASE("refuses paths") {
  const auto refuses = [](const std::string& path, ErrorCode code, const char* part) {
    const std::string text = outcome(path, code, path);
    CHECK_MESSAGE(text.c_str() == doctest::Contains(part), path);
  };
  refuses(folder() + "/missing.pbit", ErrorCode::input, "No such file");
  refuses(folder(), ErrorCode::input, "directory");
  refuses(store({}), ErrorCode::format, "empty");
  refuses(store({'P', 'B', 'I', 'T'}), ErrorCode::format, "too short");
  refuses("/dev/null", ErrorCode::input, "regular file");
  const std::string pipe = folder() + "/pipe";
  ::mkfifo(pipe.c_str(), 0600);
  refuses(pipe, ErrorCode::input, "regular file");
}

TEST_CASE("the intact file runs") {
  CHECK(outcome(store(model_to_damage()), ErrorCode::format, "intact") == "");
}

TEST_CASE("names an unknown version") {
  Bytes file = model_to_damage();
  file[4] = 9;
  const std::string text = outcome(store(file), ErrorCode::format, "version");
  CHECK(text.c_str() == doctest::Contains("version 9"));
}

TEST_CASE("refuses truncation") {
  const Bytes file = model_to_damage();
  for (size_t size = 1; size < file.size(); size += 1 + file.size() / 300) {
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE_MESSAGE(outcome(cut, "truncation").empty(), "a file cut at ", size);
    // With a consistent header the sections must be found to be missing.
    if (size < 64) continue;
    const uint64_t bytes = size;
    std::memcpy(&cut[16], &bytes, sizeof bytes);
    ModelWriter::seal(cut);
    CHECK_FALSE_MESSAGE(outcome(cut, "sealed truncation").empty(), "a sealed file cut at ", size);
  }
}

TEST_CASE("refuses flipped bits without a seal") {
  const Bytes file = model_to_damage();
  for (size_t at = 0; at < file.size(); at += 1 + file.size() / 300) {
    Bytes damaged = file;
    damaged[at] ^= 0x10;
    CHECK_FALSE_MESSAGE(outcome(damaged, "bit flip").empty(), "a flipped bit at ", at);
  }
}

/// Every byte, or each so many, takes values at which checks are likely to be off by one.
TEST_CASE("survives mutated bytes") {
  const Bytes file = small_model();
  const size_t stride = std::max(1u, parameter("PHONEBIT_TEST_STRIDE", 1));
  int accepted = 0;
  for (size_t at = 0; at < file.size(); at += stride) {
    for (const int value : {0, 1, 0xff, file[at] + 1, file[at] - 1}) {
      Bytes damaged = file;
      damaged[at] = static_cast<unsigned char>(value);
      ModelWriter::seal(damaged);
      accepted += outcome(damaged, "byte " + std::to_string(at)).empty() ? 1 : 0;
    }
  }
  MESSAGE(accepted, " single-byte mutations were harmless");
}

/// Several 32-bit words at once become extreme or take other words' values.
TEST_CASE("survives mutated words") {
  const Bytes file = model_to_damage();
  std::mt19937 random(test_seed());
  constexpr uint32_t kValues[] = {0,          1,          2,          31,         32,
                                  33,         64,         0x7fffffff, 0x80000000, 0xffffffff,
                                  0xfffffffe, 0x00100000, 0x0000ffff, 0x40000000};
  for (unsigned i = 0; i < parameter("PHONEBIT_TEST_MUTATIONS", 3000); ++i) {
    Bytes damaged = file;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int change = 0; change < changes; ++change) {
      const size_t at = 4 * (random() % (file.size() / 4));
      uint32_t value = kValues[random() % std::size(kValues)];
      if (random() % 3 == 0) std::memcpy(&value, &file[4 * (random() % (file.size() / 4))], 4);
      std::memcpy(&damaged[at], &value, 4);
    }
    ModelWriter::seal(damaged);
    outcome(damaged, "word mutation " + std::to_string(i));
  }
}

/// A file of one layer, which copies a map of so many channels, with what `add` adds.
template <class Add>
Bytes copying_model(uint32_t channels, const Add& add) {
  ModelWriter model;
  const uint32_t map = model.tensor("map", format::DataType::kF32, 6, 5, channels);
  const uint32_t copy = model.tensor("copy", format::DataType::kF32, 6, 5, channels);
  model.op(format::OpKind::kElementwise, "copy", {map}).value_output = static_cast<int32_t>(copy);
  add(model);
  return model.bytes({map}, {copy});
}

/// The file is refused with a text that has `part`; "": it is loaded.
void check_refusal(const Bytes& file, const std::string& part) {
  const std::string text = outcome(file, part);
  CHECK(text.c_str() == doctest::Contains(part.c_str()));
  CHECK(text.empty() == part.empty());
}

/// What a C++ program needs to show an image to a network, without reading JSON.
TEST_CASE("tells preprocessing and labels") {
  const Network network = Network::load(store(small_model()));
  REQUIRE(network.labels().size() == 10);
  CHECK(network.labels()[9] == "class 9");
  REQUIRE(network.preprocessing().size() == 1);
  const Preprocessing& rule = network.preprocessing()[0];
  CHECK(rule.input == 0);
  CHECK(rule.color_order == ColorOrder::bgr);
  CHECK(rule.resize == Resize::shorter_side);
  CHECK(rule.resize_to == 256);
  CHECK(rule.interpolation == Interpolation::bicubic);
  for (int c = 0; c < 3; ++c) {
    for (const int level : {0, 100, 255}) {
      const double value = (level / 255.0 - rule.mean[c]) / rule.deviation[c];
      const float computed = static_cast<float>(level) * rule.scale(c) + rule.offset(c);
      CHECK_MESSAGE(std::fabs(computed - value) < 1e-6, "level ", level, " stands for its value");
    }
  }
}

/// Damaged rules and labels, each named in the error.
TEST_CASE("refuses damaged preprocessing") {
  using Record = format::PreprocessingRecord;
  const auto refuses = [](const auto& change, const char* part) {
    Record record{0, 2, 1, 8, 0, 1, 0.0, 1.0, {}, {1, 1, 1, 1}, {}};
    change(record);
    check_refusal(copying_model(3, [&](ModelWriter& model) { model.preprocessing(record); }), part);
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  refuses([](Record&) {}, "");
  refuses([](Record& r) { r.input = 1; }, "input 1 does not exist");
  refuses([](Record& r) { r.color_order = 5; }, "unknown color_order 5");
  refuses([](Record& r) { r.color_order = 1; }, "has 1 channels, the input has 3");
  refuses([](Record& r) { r.resize = 3; }, "unknown resize 3");
  refuses([](Record& r) { r.interpolation = 3; }, "unknown interpolation 3");
  refuses([](Record& r) { r.resize_to = 5; }, "resize_to is 5, expected 6 to");
  refuses([](Record& r) { r.fill_level = 256; }, "fill_level is 256");
  refuses([](Record& r) { r.low = kNan; }, "two different finite numbers");
  refuses([](Record& r) { r.high = 0.0; }, "two different finite numbers");
  refuses([](Record& r) { r.mean[3] = kNan; }, "channel 3");
  refuses([](Record& r) { r.deviation[1] = 0.0; }, "deviation 0 of channel 1");
  refuses([](Record& r) { r.deviation[0] = 1e-300; }, "float32 cannot hold");
}

/// Two anchors of five numbers and one class each, with its name: read, and damaged.
TEST_CASE("reads and refuses detection") {
  using Record = format::DetectionRecord;
  const auto with = [](const auto& change) {
    Record record{0, 1, 2, {1.5F, 2.0F, 3.0F, 4.5F}, {}};
    change(record);
    return copying_model(12, [&](ModelWriter& model) {
      model.detection(record);
      model.label("thing");
    });
  };
  const Network network = Network::load(store(with([](Record&) {})));
  CHECK(network.labels().size() == 1);
  REQUIRE(network.detection().size() == 1);
  CHECK(network.detection()[0].anchors.size() == 2);
  CHECK(network.detection()[0].anchors[1].width == 3.0F);
  CHECK(network.detection()[0].anchors[1].height == 4.5F);
  const auto refuses = [&](const auto& change, const char* part) { check_refusal(with(change), part); };
  refuses([](Record& r) { r.output = 1; }, "output 1 does not exist");
  refuses([](Record& r) { r.kind = 0; }, "unknown kind 0");
  refuses([](Record& r) { r.kind = 2; }, "unknown kind 2");
  refuses([](Record& r) { r.anchor_count = 0; }, "0 anchors, expected 1 to 16");
  refuses([](Record& r) { r.anchor_count = 17; }, "17 anchors");
  refuses([](Record& r) { r.anchor_count = 3; }, "anchor 2 has a side of 0");
  refuses([](Record& r) { r.anchors[1] = -1.0F; }, "anchor 0 has a side of -1");
  refuses([](Record& r) { r.anchors[2] = std::numeric_limits<float>::quiet_NaN(); }, "anchor 1 has a side");
  refuses([](Record& r) { r.anchor_count = 1; }, "1 labels for the 7 classes");
}

TEST_CASE("reads plans") {
  const auto plans = loader::load_model(loader::FileBytes::of_path(store(small_model()))).plans;
  REQUIRE(plans.size() == 2);
  REQUIRE(plans[0].parts.size() == 12);
  CHECK(plans[1].parts.empty());
  CHECK(plans[0].device == "cuts");
  CHECK(plans[1].device == "nothing");
  CHECK(plans[0].method == "user");
  CHECK(plans[0].predicted_ms == 0.5);
  const PlannedPart& planned = plans[0].parts[3];
  CHECK(planned.stage == 1);
  CHECK(planned.processor == Processor::cpu);
  CHECK(planned.layer == 1);
  CHECK((planned.part == OutputPart{2, 3, 0, 40}));
}

/// A copy of a map, planned by rows on both processors: read, and damaged.
TEST_CASE("refuses damaged plans") {
  using Part = format::PlanPartRecord;
  const auto refuses = [](const auto& change, const std::string& part, const std::string& second_device) {
    std::vector<Part> parts = {{0, 1, 0, 0, 2, 0, 12, 0}, {0, 0, 0, 2, 6, 0, 12, 0}};
    change(parts);
    const Bytes file = copying_model(12, [&](ModelWriter& model) {
      model.plan("first", {});
      model.plan(second_device, parts);
    });
    check_refusal(file, part);
  };
  refuses([](auto&) {}, "", "second");
  refuses([](auto&) {}, "an earlier plan is for device 'first', too", "first");
  refuses([](auto&) {}, "its device or its method has no name", "");
  refuses([](auto& parts) { parts[1].stage = 2; }, "plan 1, part 1: stage 2 of a plan of 2 parts", "second");
  refuses([](auto& parts) { parts[0].processor = 2; }, "plan 1, part 0: unknown processor 2", "second");
  refuses([](auto& parts) { parts[0].layer = 1; }, "layer 1 does not exist, there are 1", "second");
  refuses([](auto& parts) { parts[0].row_begin = 2; }, "rows 2:2 of an output of 6", "second");
  refuses([](auto& parts) { parts[1].row_end = 7; }, "rows 2:7 of an output of 6", "second");
  refuses([](auto& parts) { parts[1].channel_end = 0xFFFFFFFF; }, "channels 0:4294967295", "second");
}

}  // namespace
