// Cancelling inferences and measuring them, on every processor of this machine.
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "check_error.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "temporary_folder.h"
#include "test_runtime_model.h"
#include "types/cancellation.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Network load(const Options& options) {
  static const Bytes file = small_model();
  return Network::load_memory(file.data(), file.size(), options);
}

/// Buffers for one batch, and what a network of the CPU makes of it.
struct Batch {
  int images;
  Content in, out, expected;

  explicit Batch(int batch) : images(batch) {
    Network cpu = load({});
    in = random_inputs(cpu.inputs(), batch);
    out = room_for(cpu.outputs(), batch);
    expected = out;
    cpu.forward(inputs_of(in), outputs_of(expected), batch);
  }
  void run(Network& network) { network.forward(inputs_of(in), outputs_of(out), images); }
};

/// The code of what `action` throws; nothing if it does not.
template <class Action>
std::optional<ErrorCode> code_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST_CASE("counts tell before from after") {
  CancelCount count{0};
  const Cancellation early(count);
  early.check();
  ++count;
  const Cancellation late(count);
  late.check();
  check_error(ErrorCode::cancelled, {"cancelled"}, "a request after it", [&] { early.check(); });
  ++count;
  CHECK(code_of([&] { late.check(); }) == ErrorCode::cancelled);
  Cancellation().check();
}

/// As many images as this network needs some two seconds for.
int long_batch(Network& network) {
  Batch few(64);
  few.run(network);  // warm
  const auto begin = Clock::now();
  few.run(network);
  return static_cast<int>(2000.0 / ms_since(begin) * few.images) + 64;
}

/// A long inference, and inferences that wait for it, all end by cancel(); what comes later does not.
void running_and_waiting_inferences_end(const Options& options) {
  Network network = load(options);
  Batch batch(long_batch(network));
  Batch one(1);
  std::vector<Content> waiting(2, one.out);
  std::atomic<int> cancelled{0}, ended{0};
  const auto count = [&](std::optional<ErrorCode> code) {
    if (code == ErrorCode::cancelled) cancelled.fetch_add(1);
    ended.fetch_add(1);
  };
  for (auto& bytes : batch.out) bytes.assign(bytes.size(), std::byte{0xA7});
  std::thread runner([&] { count(code_of([&] { batch.run(network); })); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<std::thread> waiters;
  for (Content& out : waiting) {
    waiters.emplace_back(
        [&] { count(code_of([&] { network.forward(inputs_of(one.in), outputs_of(out), 1); })); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // One would do, but a thread may not have begun yet on a busy machine.
  while (ended.load() < 3) {
    network.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  runner.join();
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(cancelled.load() == 3);
  const size_t image_bytes = batch.out[0].size() / static_cast<size_t>(batch.images);
  bool is_untouched = true;
  for (size_t at = batch.out[0].size() - image_bytes; at < batch.out[0].size(); ++at)
    is_untouched = is_untouched && batch.out[0][at] == std::byte{0xA7};
  CHECK_MESSAGE(is_untouched, "the last image was never computed");
  one.run(network);
  CHECK(one.out == one.expected);
}

void idle_cancels_have_no_effect(const Options& options) {
  Network network = load(options);
  Batch batch(3);
  for (int i = 0; i < 3; ++i) {
    network.cancel();
    batch.run(network);
    CHECK(batch.out == batch.expected);
  }
}

/// Inferences against cancels at any time: each is either cancelled or right.
void cancels_at_any_time(const Options& options) {
  Network network = load(options);
  Batch batch(2);
  std::atomic<bool> is_done{false};
  std::thread canceller([&] {
    for (unsigned i = 0; !is_done.load(); ++i) {
      network.cancel();
      std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 50));
    }
  });
  int right = 0, cancelled = 0;
  for (int inference = 0; inference < 100; ++inference) {
    for (auto& bytes : batch.out) bytes.assign(bytes.size(), std::byte{0});
    const auto code = code_of([&] { batch.run(network); });
    if (code == ErrorCode::cancelled) ++cancelled;
    if (!code && batch.out == batch.expected) ++right;
  }
  is_done.store(true);
  canceller.join();
  CHECK_MESSAGE(right + cancelled == 100, right, " inferences are right");
  batch.run(network);
  CHECK(batch.out == batch.expected);
}

/// Everything else that takes a turn ends, too.
void other_calls_end(const Options& options) {
  Network network = load(options);
  Batch batch(2);
  std::atomic<bool> is_done{false};
  std::optional<ErrorCode> code;
  std::thread runner([&] {
    code = code_of([&] { network.profile(inputs_of(batch.in), batch.images, 1 << 30); });
    is_done.store(true);
  });
  while (!is_done.load()) {
    network.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  runner.join();
  CHECK(code == ErrorCode::cancelled);
}

void inferences_are_measured(Options options) {
  Network plain = load(options);
  Batch batch(4);
  batch.run(plain);
  check_error(ErrorCode::input, {"profiling"}, "without profiling", [&] { plain.last_profile(); });

  options.profiling = true;
  Network network = load(options);
  check_error(ErrorCode::input, {"no forward pass yet"}, "before the first inference",
              [&] { network.last_profile(); });
  std::vector<double> times;
  for (int inference = 0; inference < 3; ++inference) {
    const auto begin = Clock::now();
    batch.run(network);
    const double wall_ms = ms_since(begin);
    CHECK(batch.out == batch.expected);
    times = network.last_profile();
    CHECK(times.size() == network.layers().size());
    double sum = 0.0;
    for (const double ms : times) {
      CHECK(ms >= 0.0);
      sum += ms;
    }
    CHECK(sum > 0.0);
    CHECK(sum <= wall_ms);
  }
  network.profile(inputs_of(batch.in), batch.images, 1);
  CHECK(code_of([&] { network.forward({}, {}, 1); }) == ErrorCode::input);
  CHECK_MESSAGE(network.last_profile() == times, "other calls leave the last profile");
}

void check(const Options& options) {
  SUBCASE("idle cancels have no effect") { idle_cancels_have_no_effect(options); }
  SUBCASE("cancels at any time") { cancels_at_any_time(options); }
  SUBCASE("other calls end") { other_calls_end(options); }
  SUBCASE("inferences are measured") { inferences_are_measured(options); }
}

Options two_threads(const char* device) {
  Options options;
  options.threads = 2;
  options.device = device;
  return options;
}

TEST_CASE("inferences of the CPU") {
  const Options options = two_threads("cpu");
  SUBCASE("running and waiting inferences end") { running_and_waiting_inferences_end(options); }
  check(options);
}

TEST_CASE("inferences of the GPU, and of both") {
  if (gpu_devices().empty()) {
    MESSAGE("not tested: ", gpu_error());
    return;
  }
  static const TemporaryFolder cache;
  Options options = two_threads("gpu+cpu");
  options.cache_directory = cache.path();
  SUBCASE("gpu") {
    options.device = "gpu";
    check(options);
  }
  SUBCASE("gpu+cpu") {
    SUBCASE("running and waiting inferences end") { running_and_waiting_inferences_end(options); }
    check(options);
  }
  SUBCASE("gpu+cpu with events") {
    for (const auto synchronization : {Synchronization::in_turn, Synchronization::ahead}) {
      options.synchronization = synchronization;
      cancels_at_any_time(options);
    }
  }
}

}  // namespace
