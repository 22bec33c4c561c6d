// No file makes the runtime crash: damaged ones are refused with Error(format), and what is accepted runs.
//
// Usage: test_runtime_loader [--mutations N] [--stride N] [--seed S] [FILE.pbit ...]. Damages the built-in
// model, or the files named. Meant to run under AddressSanitizer as well.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/network.h"
#include "loader/loader.h"
#include "test_runtime_model.h"

namespace {

using phonebit::engine::Error;
using phonebit::engine::ErrorCode;
using phonebit::engine::Network;
using phonebit::engine::test::Bytes;
using phonebit::engine::test::ModelWriter;

int failures = 0;
std::string folder;

void expect(bool condition, const std::string& claim) {
  if (condition || failures++ > 20) return;
  std::fprintf(stderr, "FAIL %s\n", claim.c_str());
}

std::string store(const Bytes& bytes) {
  const std::string path = folder + "/model.pbit";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void run(Network& network) {
  std::vector<std::vector<float>> memory;  // float: aligned
  const auto allocate = [&](const phonebit::engine::TensorInfo& tensor) {
    memory.emplace_back(tensor.bytes() / sizeof(float) + 1);
    return memory.back().data();
  };
  std::vector<phonebit::engine::InputBuffer> inputs;
  std::vector<phonebit::engine::OutputBuffer> outputs;
  for (const auto& tensor : network.inputs()) inputs.push_back({allocate(tensor), tensor.bytes()});
  for (const auto& tensor : network.outputs()) outputs.push_back({allocate(tensor), tensor.bytes()});
  network.forward(inputs, outputs);
}

/// What happens with a file: "" when it runs, else the text of the error.
std::string outcome(const std::string& path, ErrorCode expected_code, const std::string& what) {
  try {
    phonebit::engine::Options options;
    options.threads = 1;
    options.max_memory_bytes = uint64_t{64} << 20;
    Network network = Network::load(path, options);
    run(network);
    return "";
  } catch (const Error& error) {
    expect(error.code() == expected_code, what + ": the code of '" + error.what() + "'");
    return error.what();
  }
}

void refuses_paths() {
  const auto refuses = [](const std::string& path, ErrorCode code, const char* part) {
    const std::string text = outcome(path, code, path);
    expect(text.find(part) != std::string::npos, path + ": '" + text + "' says '" + part + "'");
  };
  refuses(folder + "/missing.pbit", ErrorCode::input, "No such file");
  refuses(folder, ErrorCode::input, "directory");
  refuses(store({}), ErrorCode::format, "empty");
  refuses(store({'P', 'B', 'I', 'T'}), ErrorCode::format, "too short");
  refuses("/dev/null", ErrorCode::input, "regular file");
  const std::string pipe = folder + "/pipe";
  ::mkfifo(pipe.c_str(), 0600);
  refuses(pipe, ErrorCode::input, "regular file");
}

void names_unknown_version(Bytes file) {
  file[4] = 9;
  const std::string text = outcome(store(file), ErrorCode::format, "version");
  expect(text.find("version 9") != std::string::npos, "'" + text + "' names the version");
}

void refuses_truncation(const Bytes& file) {
  for (size_t size = 1; size < file.size(); size += 1 + file.size() / 300) {
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    expect(!outcome(store(cut), ErrorCode::format, "truncation").empty(),
           "a file cut at " + std::to_string(size));
    // With a consistent header the sections must be found to be missing.
    if (size < 64) continue;
    const uint64_t bytes = size;
    std::memcpy(&cut[16], &bytes, sizeof bytes);
    ModelWriter::seal(cut);
    expect(!outcome(store(cut), ErrorCode::format, "sealed truncation").empty(),
           "a sealed file cut at " + std::to_string(size));
  }
}

void refuses_flipped_bits_without_seal(const Bytes& file) {
  for (size_t at = 0; at < file.size(); at += 1 + file.size() / 300) {
    Bytes damaged = file;
    damaged[at] ^= 0x10;
    expect(!outcome(store(damaged), ErrorCode::format, "bit flip").empty(),
           "a flipped bit at " + std::to_string(at));
  }
}

/// Every byte, or each so many, takes values at which checks are likely to be off by one.
void survives_mutated_bytes(const Bytes& file, size_t stride) {
  int accepted = 0;
  for (size_t at = 0; at < file.size(); at += stride) {
    for (const int value : {0, 1, 0xff, file[at] + 1, file[at] - 1}) {
      Bytes damaged = file;
      damaged[at] = static_cast<unsigned char>(value);
      ModelWriter::seal(damaged);
      accepted += outcome(store(damaged), ErrorCode::format, "byte " + std::to_string(at)).empty() ? 1 : 0;
    }
  }
  std::printf("  %d single-byte mutations were harmless\n", accepted);
}

/// Several 32-bit words at once become extreme or take other words' values.
void survives_mutated_words(const Bytes& file, int count, std::mt19937& random) {
  constexpr uint32_t kValues[] = {0,          1,          2,          31,         32,
                                  33,         64,         0x7fffffff, 0x80000000, 0xffffffff,
                                  0xfffffffe, 0x00100000, 0x0000ffff, 0x40000000};
  for (int i = 0; i < count; ++i) {
    Bytes damaged = file;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int change = 0; change < changes; ++change) {
      const size_t at = 4 * (random() % (file.size() / 4));
      uint32_t value = kValues[random() % std::size(kValues)];
      if (random() % 3 == 0) std::memcpy(&value, &file[4 * (random() % (file.size() / 4))], 4);
      std::memcpy(&damaged[at], &value, 4);
    }
    ModelWriter::seal(damaged);
    outcome(store(damaged), ErrorCode::format, "word mutation " + std::to_string(i));
  }
}

/// What a C++ program needs to show a picture to a network, without reading JSON.
void tells_preprocessing_and_labels(const Bytes& file) {
  const Network network = Network::load(store(file));
  expect(network.labels().size() == 10 && network.labels()[9] == "class 9", "labels are there");
  expect(network.preprocessing().size() == 1, "the input is described");
  if (network.preprocessing().size() != 1) return;
  const phonebit::engine::Preprocessing& rule = network.preprocessing()[0];
  expect(rule.input == 0 && rule.color_order == phonebit::engine::ColorOrder::bgr, "the colour order");
  expect(rule.resize == phonebit::engine::Resize::shorter_side && rule.resize_to == 256, "the size");
  expect(rule.interpolation == phonebit::engine::Interpolation::bicubic, "the interpolation");
  for (int c = 0; c < 3; ++c) {
    for (const int level : {0, 100, 255}) {
      const double value = (level / 255.0 - rule.mean[c]) / rule.deviation[c];
      const float computed = static_cast<float>(level) * rule.scale(c) + rule.offset(c);
      expect(std::fabs(computed - value) < 1e-6, "level " + std::to_string(level) + " stands for its value");
    }
  }
}

/// Damaged rules and labels, each named in the error.
void refuses_damaged_preprocessing() {
  using Record = phonebit::engine::format::PreprocessingRecord;
  const auto refuses = [](const auto& change, const char* part) {
    Record record{0, 2, 1, 8, 0, 1, 0.0, 1.0, {}, {1, 1, 1, 1}, {}};
    change(record);
    ModelWriter model;
    const uint32_t image = model.tensor("image", phonebit::engine::format::DataType::kF32, 6, 5, 3);
    const uint32_t copy = model.tensor("copy", phonebit::engine::format::DataType::kF32, 6, 5, 3);
    model.op(phonebit::engine::format::OpKind::kElementwise, "copy", {image}).value_output =
        static_cast<int32_t>(copy);
    model.preprocessing(record);
    const std::string text = outcome(store(model.bytes({image}, {copy})), ErrorCode::format, part);
    const bool is_as_expected = *part == '\0' ? text.empty() : text.find(part) != std::string::npos;
    expect(is_as_expected, "'" + text + "' says '" + part + "'");
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
void reads_and_refuses_detection() {
  using Record = phonebit::engine::format::DetectionRecord;
  const auto with = [](const auto& change) {
    Record record{0, 1, 2, {1.5F, 2.0F, 3.0F, 4.5F}, {}};
    change(record);
    ModelWriter model;
    const uint32_t map = model.tensor("map", phonebit::engine::format::DataType::kF32, 6, 5, 12);
    const uint32_t copy = model.tensor("copy", phonebit::engine::format::DataType::kF32, 6, 5, 12);
    model.op(phonebit::engine::format::OpKind::kElementwise, "copy", {map}).value_output =
        static_cast<int32_t>(copy);
    model.detection(record);
    model.label("thing");
    return model.bytes({map}, {copy});
  };
  const Network network = Network::load(store(with([](Record&) {})));
  expect(network.labels().size() == 1, "a label for each class, not for each channel");
  expect(network.detection().size() == 1 && network.detection()[0].anchors.size() == 2, "two anchors");
  expect(network.detection()[0].anchors[1].width == 3.0F, "the width of the second");
  expect(network.detection()[0].anchors[1].height == 4.5F, "the height of the second");
  const auto refuses = [&](const auto& change, const std::string& part) {
    const std::string text = outcome(store(with(change)), ErrorCode::format, part);
    expect(text.find(part) != std::string::npos, "'" + text + "' says '" + part + "'");
  };
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

void reads_plans() {
  const auto plans = phonebit::engine::loader::load_model(phonebit::engine::loader::FileBytes::of_path(
                                                              store(phonebit::engine::test::small_model())))
                         .plans;
  expect(plans.size() == 2 && plans[0].parts.size() == 12 && plans[1].parts.empty(), "two plans");
  expect(plans[0].device == "cuts" && plans[1].device == "nothing", "their devices");
  expect(plans[0].method == "user" && plans[0].predicted_ms == 0.5, "method and prediction");
  const phonebit::engine::PlannedPart& planned = plans[0].parts[3];
  expect(planned.stage == 1 && planned.processor == phonebit::engine::Processor::cpu && planned.layer == 1,
         "a part");
  expect(planned.part.row_begin == 2 && planned.part.row_end == 3, "its rows");
  expect(planned.part.channel_begin == 0 && planned.part.channel_end == 40, "its channels");
}

/// A copy of a map, planned by rows on both processors: read, and damaged.
void refuses_damaged_plans() {
  using Part = phonebit::engine::format::PlanPartRecord;
  const auto refuses = [](const auto& change, const std::string& part, const std::string& second_device) {
    std::vector<Part> parts = {{0, 1, 0, 0, 2, 0, 12, 0}, {0, 0, 0, 2, 6, 0, 12, 0}};
    change(parts);
    ModelWriter model;
    const uint32_t map = model.tensor("map", phonebit::engine::format::DataType::kF32, 6, 5, 12);
    const uint32_t copy = model.tensor("copy", phonebit::engine::format::DataType::kF32, 6, 5, 12);
    model.op(phonebit::engine::format::OpKind::kElementwise, "copy", {map}).value_output =
        static_cast<int32_t>(copy);
    model.plan("first", {});
    model.plan(second_device, parts);
    const std::string text = outcome(store(model.bytes({map}, {copy})), ErrorCode::format, part);
    expect(part.empty() ? text.empty() : text.find(part) != std::string::npos,
           "'" + text + "' says '" + part + "'");
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

void try_file(const Bytes& file, int mutations, std::mt19937& random) {
  expect(outcome(store(file), ErrorCode::format, "intact").empty(), "the intact file runs");
  names_unknown_version(file);
  refuses_truncation(file);
  refuses_flipped_bits_without_seal(file);
  survives_mutated_words(file, mutations, random);
}

}  // namespace

int main(int argc, char** argv) {
  int mutations = 3000;
  size_t stride = 1;
  unsigned seed = 1;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc)
      mutations = std::atoi(argv[++i]);
    else if (argument == "--stride" && i + 1 < argc)
      stride = static_cast<size_t>(std::max(1, std::atoi(argv[++i])));
    else if (argument == "--seed" && i + 1 < argc)
      seed = static_cast<unsigned>(std::atoi(argv[++i]));
    else
      paths.push_back(argument);
  }
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::string pattern = (std::filesystem::temp_directory_path() / "phonebit_loader_XXXXXX").string();
  folder = ::mkdtemp(pattern.data());

  refuses_paths();
  if (paths.empty()) {
    const Bytes small = phonebit::engine::test::small_model();
    try_file(small, mutations, random);
    survives_mutated_bytes(small, stride);
    tells_preprocessing_and_labels(small);
    refuses_damaged_preprocessing();
    reads_and_refuses_detection();
    reads_plans();
    refuses_damaged_plans();
  }
  for (const std::string& path : paths) {
    std::printf("%s\n", path.c_str());
    std::ifstream stream(path, std::ios::binary);
    try_file(Bytes(std::istreambuf_iterator<char>(stream), {}), mutations, random);
  }
  for (const char* name : {"/model.pbit", "/pipe"}) ::unlink((folder + name).c_str());
  ::rmdir(folder.c_str());
  return failures == 0 ? 0 : 1;
}
