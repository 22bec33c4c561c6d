// The C++ wrapper: what it gives is what the engine gives, bit for bit, for every golden file; values, errors
// and ownership. Built twice, the second time without exceptions and RTTI.
//
//   test_cpp_api FOLDER    of golden .pbit files
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.h"
#include "engine_reference.h"
#include "phonebit/phonebit.h"

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

std::string classifier;

Options cpu() { return Options().device("cpu").threads(2); }

template <class T>
void expect_error(const Result<T>& result, Status status, const std::string& part, const char* what) {
  const bool is_right =
      result.error().status == status && result.error().text.find(part) != std::string::npos;
  if (is_right && !result.ok()) return;
  ++failures;
  std::fprintf(stderr, "FAIL %s: %s '%s', expected '%s'\n", what,
               phonebit::status_name(result.error().status), result.error().text.c_str(), part.c_str());
}

std::vector<Bytes> outputs_for(const Network& network, int batch) {
  std::vector<Bytes> outputs;
  for (const phonebit::TensorInfo& tensor : network.outputs())
    outputs.emplace_back(tensor.bytes * static_cast<size_t>(batch));
  return outputs;
}

/// Forward passes in all ways that there are.
void check_file(const std::string& path) {
  auto network = Network::load(path, cpu());
  EXPECT(network.ok());
  if (!network) return;
  for (const int batch : {1, 3}) {
    const std::vector<Bytes> inputs = reference::inputs_of(path, batch);
    const std::vector<Bytes> expected = reference::outputs_of(path, "cpu", inputs, batch);
    std::vector<Bytes> got = outputs_for(*network, batch);
    const std::vector<Input> in(inputs.begin(), inputs.end());
    const std::vector<Output> out(got.begin(), got.end());
    EXPECT(network->forward(in, out, batch).ok());
    EXPECT(got == expected);
    for (Bytes& bytes : got) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    auto job = network->forward_async(in, out, batch);
    EXPECT(job.ok() && job->wait().ok() && job->is_done());
    EXPECT(got == expected);
  }
}

void check_facts(const Network& network) {
  const std::vector<phonebit::TensorInfo> inputs = network.inputs(), outputs = network.outputs();
  EXPECT(inputs.size() == 1 && inputs[0].type == phonebit::Type::u8 &&
         inputs[0].bytes == inputs[0].elements());
  EXPECT(outputs.size() == 1 && outputs[0].type == phonebit::Type::f32);
  EXPECT(network.find_input(inputs[0].name).value() == 0 &&
         network.find_output(outputs[0].name).value() == 0);
  expect_error(network.find_input("nobody"), Status::input, "'nobody'", "find_input");
  expect_error(network.find_output("nobody"), Status::input, "'nobody'", "find_output");
  const std::vector<phonebit::LayerInfo> layers = network.layers();
  EXPECT(!layers.empty() && !layers[0].kind.empty() && !layers[0].kernel.empty());
  bool has_binary = false;
  for (const phonebit::LayerInfo& layer : layers) has_binary |= layer.is_binary && layer.macs > 0;
  EXPECT(has_binary);
  EXPECT(network.labels().empty() || network.labels().size() == static_cast<size_t>(outputs[0].channels));
  EXPECT(network.memory().arena_bytes >= network.memory().lower_bound_bytes);
  EXPECT(network.startup().programs_built == 0 && network.warnings().empty() && network.plan().empty());
  EXPECT(network.device().rfind("cpu:", 0) == 0 && network.plan_key().empty() && network.threads() == 2);
  EXPECT(network.detection().value().head == phonebit::Head::none);
  EXPECT(network.preprocessing().ok());
  expect_error(network.preprocessing(1), Status::input, "number of inputs", "preprocessing");
  expect_error(network.detection(-1), Status::input, "got -1", "detection");
  expect_error(network.coexec(), Status::input, "'gpu+cpu'", "coexec");
}

void check_loading() {
  expect_error(Network::load("/no/such.pbit"), Status::input, "/no/such.pbit", "load");
  expect_error(Network::load(classifier, Options().device("abacus")), Status::input, "'abacus'", "load");
  expect_error(Network::load(classifier, Options().sync_limit(-1)), Status::input, "limit_ms", "load");
  const std::array<uint8_t, 4> magic{'P', 'B', 'I', 'T'};
  expect_error(Network::load_memory(magic, cpu()), Status::format, "4 bytes", "load_memory");
  expect_error(Network::load_fd(-1, 0, 0, cpu()), Status::input, "descriptor -1", "load_fd");

  size_t bytes = 0;
  char* const content = read_file(classifier.c_str(), &bytes);
  const std::vector<uint8_t> file(content, content + bytes);
  free(content);
  auto of_memory = Network::load_memory(file, cpu());
  EXPECT(of_memory.ok());
  const int fd = ::open(classifier.c_str(), O_RDONLY);
  auto of_fd = Network::load_fd(fd, 0, static_cast<int64_t>(bytes), cpu());
  ::close(fd);
  EXPECT(of_fd.ok());
  EXPECT(of_fd->layers().size() == of_memory->layers().size());
}

void check_ownership() {
  Network first = Network::load(classifier, cpu()).value();
  Network second = std::move(first);
  EXPECT(first.get() == nullptr && second.get() != nullptr);  // NOLINT: what a moved-from object does
  EXPECT(first.inputs().empty() && first.device().empty() && first.threads() == 0);
  expect_error(first.cancel(), Status::input, "network: got NULL", "a moved-from network");
  first = std::move(second);
  EXPECT(first.inputs().size() == 1);
  EXPECT(Network::load("/no/such.pbit").value_or(std::move(first)).inputs().size() == 1);
}

void check_running(Network& network) {
  Bytes image(network.inputs()[0].bytes, 9);
  std::vector<float> scores(network.outputs()[0].elements()), again(scores.size());
  EXPECT(network.forward({image}, {scores}).ok());
  EXPECT(
      network.forward({{image.data(), image.size()}}, {{again.data(), again.size() * sizeof(float)}}).ok());
  EXPECT(scores == again);
  expect_error(network.forward({image}, {scores}, 2), Status::input, "2 images", "forward");
  const std::vector<Input> in{image};
  EXPECT(network.profile(in, 1, 1).value().size() == network.layers().size());
  expect_error(network.profile(in, 1, 0), Status::input, "repeats", "profile");
  expect_error(network.last_profile(), Status::input, "profiling", "last_profile");
  auto profiled = Network::load(classifier, cpu().profiling(true)).value();
  EXPECT(profiled.forward({image}, {scores}).ok());
  EXPECT(profiled.last_profile().value().size() == network.layers().size());
}

void check_jobs(Network& network) {
  Bytes image(network.inputs()[0].bytes, 9);
  std::vector<float> scores(network.outputs()[0].elements());
  std::atomic<int> calls{0}, gate{0};
  std::vector<Status> seen(3, Status::internal);
  const auto pass = [&](size_t index) {
    return network.forward_async({image}, {scores}, 1, [&, index](const Result<void>& result) {
      seen[index] = result.error().status;
      ++calls;
      while (gate == 0) std::this_thread::yield();
    });
  };
  auto first = pass(0), second = pass(1);
  while (calls == 0) std::this_thread::yield();
  EXPECT(!first->is_done());
  expect_error(first->wait(0), Status::pending, "not done", "wait");
  EXPECT(network.cancel().ok());
  auto third = pass(2);
  gate = 1;
  EXPECT(first->wait().ok() && third->wait().ok());
  expect_error(second->wait(), Status::cancelled, "cancelled", "a cancelled job");
  EXPECT(calls == 3 && seen[0] == Status::ok && seen[1] == Status::cancelled && seen[2] == Status::ok);
  std::string error;
  auto wrong = network.forward_async({image}, {scores}, 2,
                                     [&](const Result<void>& result) { error = result.error().text; });
  expect_error(wrong->wait(), Status::input, "2 images", "wait");
  EXPECT(error == wrong->wait().error().text);
  Network moved_from = std::move(network);
  expect_error(network.forward_async({image}, {scores}), Status::input, "network: got NULL", "forward_async");
  network = std::move(moved_from);
}

/// Several threads on one network: each gets its own image's scores.
void check_threads(Network& network) {
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
      for (int pass = 0; pass < 20; ++pass)
        if (!network.forward(Span<const Input>(&in, 1), Span<const Output>(&out, 1)).ok()) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(wrong == 0 && got == expected);
}

void check_pictures(const Network& network) {
  const phonebit::TensorInfo input = network.inputs()[0];
  std::vector<uint8_t> pixels(input.elements());
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 31);
  phonebit::Picture picture;
  picture.format = input.channels == 1 ? phonebit::PictureFormat::gray : phonebit::PictureFormat::rgb;
  picture.width = input.width;
  picture.height = input.height;
  picture.planes[0] = pixels.data();
  phonebit::Preprocessing rule;
  rule.color_order = input.channels == 1 ? phonebit::ColorOrder::gray : phonebit::ColorOrder::rgb;
  rule.interpolation = phonebit::Interpolation::nearest;
  std::vector<uint8_t> image(input.bytes);
  EXPECT(network.prepare_picture(picture, image, 0, &rule).ok());
  EXPECT(image == pixels);
  picture.rotation = 45;
  expect_error(network.prepare_picture(picture, image, 0, &rule), Status::input, "45", "prepare_picture");
}

void check_machine() {
  const auto devices = phonebit::devices();
  EXPECT(devices.ok() && devices->front().kind == phonebit::DeviceKind::cpu);
  for (const phonebit::CoreInfo& core : phonebit::cores().value()) EXPECT(core.index >= 0);
  const auto sources = phonebit::energy_sources();
  EXPECT(sources.ok() && sources->size() >= 4);
  auto meter = phonebit::EnergyMeter::create("perpetuum mobile");
  expect_error(meter, Status::device, "perpetuum mobile", "EnergyMeter");
  expect_error(phonebit::self_test(cpu()), Status::input, "no OpenCL device", "self_test");
  EXPECT(phonebit::version() == phonebit_version());
  EXPECT(phonebit::opencl_error().empty() == (has_opencl() != 0));
  if (has_opencl()) EXPECT(phonebit::use_opencl_library("/none").ok());  // in use already: no effect
}

void check_both_processors(const std::string& folder) {
  const std::string path = folder + "/planned_classifier.pbit";
  auto network =
      Network::load(path, Options().device("gpu+cpu").cache_directory(getenv("PHONEBIT_CACHE_DIR")));
  EXPECT(network.ok());
  if (!network) return;
  const std::vector<Bytes> inputs = reference::inputs_of(path, 2);
  std::vector<Bytes> got = outputs_for(*network, 2);
  EXPECT(network->forward({inputs[0]}, {got[0]}, 2).ok());
  EXPECT(got == reference::outputs_of(path, "cpu", inputs, 2));
  const std::vector<phonebit::PlannedPart> plan = network->plan();
  EXPECT(plan.size() >= network->layers().size() && !network->plan_key().empty());
  EXPECT(network->coexec().value().sharing != phonebit::Sharing::automatic);
  EXPECT(network->measure_layer(0, nullptr, &plan[0].part, 1).value().total_us > 0.0);
  EXPECT(!network->dispatch(0, plan[0].part).value().empty());
  expect_error(network->dispatch(-1, plan[0].part), Status::input, "got -1", "dispatch");
  auto planned = Network::load(path, Options()
                                         .device("gpu+cpu")
                                         .plan(plan)
                                         .sharing(phonebit::Sharing::copy)
                                         .trial(false)
                                         .cache_directory(getenv("PHONEBIT_CACHE_DIR")));
  EXPECT(planned.ok() && planned->plan().size() == plan.size());
  EXPECT(planned.ok() && !planned->coexec().value().is_on_trial);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: test_cpp_api FOLDER\n"), 2;
  classifier = std::string(argv[1]) + "/tiny_classifier.pbit";
  const std::vector<std::string> files = reference::files_in(argv[1]);
  EXPECT(!files.empty());
  for (const std::string& path : files) check_file(path);
  check_loading();
  check_ownership();
  Network network = Network::load(classifier, cpu()).value();
  check_facts(network);
  check_running(network);
  check_jobs(network);
  check_threads(network);
  check_pictures(network);
  check_machine();
  if (has_opencl())
    check_both_processors(argv[1]);
  else
    std::printf("both processors: skipped, %s\n", phonebit_opencl_error());
  return finish();
}
