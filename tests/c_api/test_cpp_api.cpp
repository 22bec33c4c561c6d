// The C++ wrapper: what it gives is what the engine gives, bit for bit, for every golden file; values, errors
// and ownership. Built twice, the second time without exceptions and RTTI.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "doctest_strings.h"
#include "engine_reference.h"
#include "phonebit/phonebit.h"
#include "temporary_folder.h"

namespace {

using phonebit::Input;
using phonebit::Network;
using phonebit::Options;
using phonebit::Output;
using phonebit::Result;
using phonebit::Span;
using phonebit::Status;
using reference::Bytes;

static_assert(std::is_nothrow_move_constructible_v<Network> && !std::is_copy_constructible_v<Network>);
static_assert(!std::is_copy_constructible_v<phonebit::Job> && std::is_move_assignable_v<phonebit::Job>);
static_assert(std::is_copy_constructible_v<Options>);
static_assert(std::is_constructible_v<Span<const int>, const std::vector<int>&>);
static_assert(!std::is_constructible_v<Span<int>, const std::vector<int>&>);
static_assert(!std::is_constructible_v<Output, const std::vector<float>&>);

const std::string kGolden = PHONEBIT_SOURCE_DIR "/tests/golden/v1";
const std::string classifier = kGolden + "/tiny_classifier.pbit";

Options cpu() { return Options().device("cpu").threads(2); }

Network load_classifier() { return Network::load(classifier, cpu()).value(); }

bool has_opencl() { return phonebit::devices().value().back().kind != phonebit::DeviceKind::cpu; }

template <class T>
void check_error(const Result<T>& result, Status status, const std::string& part, const char* what) {
  INFO(what);
  CHECK_FALSE(result.ok());
  CHECK(result.error().status == status);
  CHECK(result.error().text.c_str() == doctest::Contains(part.c_str()));
}

std::vector<Bytes> outputs_for(const Network& network, int batch) {
  std::vector<Bytes> outputs;
  for (const phonebit::TensorInfo& tensor : network.outputs())
    outputs.emplace_back(tensor.bytes * static_cast<size_t>(batch));
  return outputs;
}

/// Inferences in all ways that there are.
void check_file(const std::string& path) {
  INFO(path);
  auto network = Network::load(path, cpu());
  REQUIRE(network.ok());
  for (const int batch : {1, 3}) {
    const std::vector<Bytes> inputs = reference::inputs_of(path, batch);
    const std::vector<Bytes> expected = reference::outputs_of(path, "cpu", inputs, batch);
    std::vector<Bytes> got = outputs_for(*network, batch);
    const std::vector<Input> in(inputs.begin(), inputs.end());
    const std::vector<Output> out(got.begin(), got.end());
    CHECK(network->forward(in, out, batch).ok());
    CHECK(got == expected);
    for (Bytes& bytes : got) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    auto job = network->forward_async(in, out, batch);
    REQUIRE(job.ok());
    REQUIRE(job->wait().ok());
    CHECK(job->is_done());
    CHECK(got == expected);
  }
}

TEST_CASE("every golden file gives what the engine gives") {
  const std::vector<std::string> files = reference::files_in(kGolden);
  CHECK_FALSE(files.empty());
  for (const std::string& path : files) check_file(path);
}

TEST_CASE("facts") {
  const Network network = load_classifier();
  const std::vector<phonebit::TensorInfo> inputs = network.inputs(), outputs = network.outputs();
  REQUIRE(inputs.size() == 1);
  CHECK(inputs[0].type == phonebit::Type::u8);
  CHECK(inputs[0].bytes == inputs[0].elements());
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].type == phonebit::Type::f32);
  CHECK(network.find_input(inputs[0].name).value() == 0);
  CHECK(network.find_output(outputs[0].name).value() == 0);
  check_error(network.find_input("nobody"), Status::input, "'nobody'", "find_input");
  check_error(network.find_output("nobody"), Status::input, "'nobody'", "find_output");
  const std::vector<phonebit::LayerInfo> layers = network.layers();
  REQUIRE_FALSE(layers.empty());
  CHECK_FALSE(layers[0].kind.empty());
  CHECK_FALSE(layers[0].kernel.empty());
  bool has_binary = false;
  for (const phonebit::LayerInfo& layer : layers) has_binary |= layer.is_binary && layer.macs > 0;
  CHECK(has_binary);
  CHECK((network.labels().empty() || network.labels().size() == static_cast<size_t>(outputs[0].channels)));
  CHECK(network.memory().arena_bytes >= network.memory().lower_bound_bytes);
  CHECK(network.startup().programs_built == 0);
  CHECK(network.warnings().empty());
  CHECK(network.plan().empty());
  CHECK(network.device().rfind("cpu:", 0) == 0);
  CHECK(network.plan_key().empty());
  CHECK(network.threads() == 2);
  CHECK(network.detection().value().head == phonebit::Head::none);
  CHECK(network.preprocessing().ok());
  check_error(network.preprocessing(1), Status::input, "number of inputs", "preprocessing");
  check_error(network.detection(-1), Status::input, "got -1", "detection");
  check_error(network.coexec(), Status::input, "'gpu+cpu'", "coexec");
}

TEST_CASE("loading") {
  check_error(Network::load("/no/such.pbit"), Status::input, "/no/such.pbit", "load");
  check_error(Network::load(classifier, Options().device("abacus")), Status::input, "'abacus'", "load");
  check_error(Network::load(classifier, Options().sync_limit(-1)), Status::input, "limit_ms", "load");
  const std::array<uint8_t, 4> magic{'P', 'B', 'I', 'T'};
  check_error(Network::load_memory(magic, cpu()), Status::format, "4 bytes", "load_memory");
  check_error(Network::load_fd(-1, 0, 0, cpu()), Status::input, "descriptor -1", "load_fd");

  std::ifstream stream(classifier, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(stream), {}};
  const std::vector<uint8_t> file(content.begin(), content.end());
  auto of_memory = Network::load_memory(file, cpu());
  CHECK(of_memory.ok());
  const int fd = ::open(classifier.c_str(), O_RDONLY);
  auto of_fd = Network::load_fd(fd, 0, static_cast<int64_t>(file.size()), cpu());
  ::close(fd);
  CHECK(of_fd.ok());
  CHECK(of_fd->layers().size() == of_memory->layers().size());
}

TEST_CASE("ownership") {
  Network first = load_classifier();
  Network second = std::move(first);
  CHECK(first.get() == nullptr);  // NOLINT: what a moved-from object does
  CHECK(second.get() != nullptr);
  CHECK(first.inputs().empty());
  CHECK(first.device().empty());
  CHECK(first.threads() == 0);
  check_error(first.cancel(), Status::input, "network: got NULL", "a moved-from network");
  first = std::move(second);
  CHECK(first.inputs().size() == 1);
  CHECK(Network::load("/no/such.pbit").value_or(std::move(first)).inputs().size() == 1);
}

TEST_CASE("running") {
  Network network = load_classifier();
  Bytes image(network.inputs()[0].bytes, 9);
  std::vector<float> scores(network.outputs()[0].elements()), again(scores.size());
  CHECK(network.forward({image}, {scores}).ok());
  CHECK(network.forward({{image.data(), image.size()}}, {{again.data(), again.size() * sizeof(float)}}).ok());
  CHECK(scores == again);
  check_error(network.forward({image}, {scores}, 2), Status::input, "2 images", "forward");
  const std::vector<Input> in{image};
  CHECK(network.profile(in, 1, 1).value().size() == network.layers().size());
  check_error(network.profile(in, 1, 0), Status::input, "repeats", "profile");
  check_error(network.last_profile(), Status::input, "profiling", "last_profile");
  auto profiled = Network::load(classifier, cpu().profiling(true)).value();
  CHECK(profiled.forward({image}, {scores}).ok());
  CHECK(profiled.last_profile().value().size() == network.layers().size());
}

TEST_CASE("jobs") {
  Network network = load_classifier();
  Bytes image(network.inputs()[0].bytes, 9);
  std::vector<float> scores(network.outputs()[0].elements());
  std::atomic<int> calls{0}, gate{0};
  std::vector<Status> seen(3, Status::internal);
  const auto start = [&](size_t index) {
    return network.forward_async({image}, {scores}, 1, [&, index](const Result<void>& result) {
      seen[index] = result.error().status;
      ++calls;
      while (gate == 0) std::this_thread::yield();
    });
  };
  auto first = start(0), second = start(1);
  while (calls == 0) std::this_thread::yield();
  CHECK_FALSE(first->is_done());
  check_error(first->wait(0), Status::pending, "not done", "wait");
  CHECK(network.cancel().ok());
  auto third = start(2);
  gate = 1;
  REQUIRE(first->wait().ok());
  CHECK(third->wait().ok());
  check_error(second->wait(), Status::cancelled, "cancelled", "a cancelled job");
  CHECK(calls == 3);
  CHECK(seen[0] == Status::ok);
  CHECK(seen[1] == Status::cancelled);
  CHECK(seen[2] == Status::ok);
  const auto never = [&](const Result<void>&) { ++calls; };
  check_error(network.forward_async({image}, {scores}, 2, never), Status::input, "2 images", "forward_async");
  const Span<uint8_t> part(reinterpret_cast<uint8_t*>(scores.data()), image.size());
  check_error(network.forward_async({part}, {scores}, never), Status::input, "overlaps", "forward_async");
  auto fourth = network.forward_async({Span<const uint8_t>(image)}, {scores}, never);
  CHECK(fourth->wait().ok());
  CHECK(calls == 4);
  Network moved_from = std::move(network);
  check_error(network.forward_async({image}, {scores}), Status::input, "network: got NULL", "forward_async");
  network = std::move(moved_from);
}

TEST_CASE("several threads on one network get their own images' scores") {
  Network network = load_classifier();
  const std::string path = classifier;
  const std::vector<Bytes> images = reference::inputs_of(path, 8);
  const Bytes expected = reference::outputs_of(path, "cpu", images, 8)[0];
  const size_t image_bytes = images[0].size() / 8, score_bytes = expected.size() / 8;
  Bytes got(expected.size());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t image = 0; image < 8; ++image) {
    threads.emplace_back([&, image] {
      const Input in{images[0].data() + image * image_bytes, image_bytes};
      const Output out{got.data() + image * score_bytes, score_bytes};
      for (int inference = 0; inference < 20; ++inference)
        if (!network.forward(Span<const Input>(&in, 1), Span<const Output>(&out, 1)).ok()) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(got == expected);
}

TEST_CASE("images") {
  const Network network = load_classifier();
  const phonebit::TensorInfo input = network.inputs()[0];
  std::vector<uint8_t> pixels(input.elements());
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 31);
  phonebit::Image source;
  source.format = input.channels == 1 ? phonebit::ImageFormat::gray : phonebit::ImageFormat::rgb;
  source.width = input.width;
  source.height = input.height;
  source.planes[0] = pixels.data();
  phonebit::Preprocessing rule;
  rule.color_order = input.channels == 1 ? phonebit::ColorOrder::gray : phonebit::ColorOrder::rgb;
  rule.interpolation = phonebit::Interpolation::nearest;
  std::vector<uint8_t> image(input.bytes);
  CHECK(network.prepare_image(source, image, 0, &rule).ok());
  CHECK(image == pixels);
  source.rotation = 45;
  check_error(network.prepare_picture(source, image, 0, &rule), Status::input, "45", "prepare_picture");
}

TEST_CASE("the machine") {
  const auto devices = phonebit::devices();
  REQUIRE(devices.ok());
  CHECK(devices->front().kind == phonebit::DeviceKind::cpu);
  for (const phonebit::CoreInfo& core : phonebit::cores().value()) CHECK(core.index >= 0);
  const auto sources = phonebit::energy_sources();
  REQUIRE(sources.ok());
  CHECK(sources->size() >= 3);
  auto meter = phonebit::EnergyMeter::create("perpetuum mobile");
  check_error(meter, Status::device, "perpetuum mobile", "EnergyMeter");
  check_error(phonebit::self_test(cpu()), Status::input, "is no GPU", "self_test");
  CHECK(phonebit::version() == phonebit_version());
  CHECK(phonebit::opencl_error().empty() == has_opencl());
  if (has_opencl()) CHECK(phonebit::use_opencl_library("/none").ok());  // in use already: no effect
}

TEST_CASE("both processors") {
  if (!has_opencl()) {
    MESSAGE("not tested: ", phonebit::opencl_error());
    return;
  }
  const std::string path = kGolden + "/planned_classifier.pbit";
  const phonebit::engine::test::TemporaryFolder cache;
  auto network = Network::load(path, Options().device("gpu+cpu").cache_directory(cache.path()));
  REQUIRE(network.ok());
  const std::vector<Bytes> inputs = reference::inputs_of(path, 2);
  std::vector<Bytes> got = outputs_for(*network, 2);
  CHECK(network->forward({inputs[0]}, {got[0]}, 2).ok());
  CHECK(got == reference::outputs_of(path, "cpu", inputs, 2));
  const std::vector<phonebit::PlannedPart> plan = network->plan();
  CHECK(plan.size() >= network->layers().size());
  CHECK_FALSE(network->plan_key().empty());
  CHECK(network->coexec().value().sharing != phonebit::Sharing::automatic);
  CHECK(network->measure_layer(0, nullptr, &plan[0].part, 1).value().total_us > 0.0);
  CHECK_FALSE(network->dispatch(0, plan[0].part).value().empty());
  check_error(network->dispatch(-1, plan[0].part), Status::input, "got -1", "dispatch");
  auto planned = Network::load(path, Options()
                                         .device("gpu+cpu")
                                         .plan(plan)
                                         .sharing(phonebit::Sharing::copy)
                                         .trial(false)
                                         .cache_directory(cache.path()));
  REQUIRE(planned.ok());
  CHECK(planned->plan().size() == plan.size());
  REQUIRE(planned.ok());
  CHECK(!planned->coexec().value().is_on_trial);
}

}  // namespace
