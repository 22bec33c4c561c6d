// Cancelling passes and measuring them, on every processor of this machine.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "claims.h"
#include "engine/devices.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "types/cancellation.h"

namespace {

using phonebit::engine::Error;
using phonebit::engine::ErrorCode;
using phonebit::engine::Network;
using phonebit::engine::Options;
using phonebit::engine::test::Bytes;
using phonebit::engine::test::Content;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Network load(const Options& options) {
  static const Bytes file = phonebit::engine::test::small_model();
  return Network::load_memory(file.data(), file.size(), options);
}

/// Buffers for one batch, and what a network of the CPU makes of it.
struct Batch {
  int images;
  Content in, out, expected;

  explicit Batch(int batch) : images(batch) {
    Network cpu = load({});
    in = phonebit::engine::test::random_inputs(cpu.inputs(), batch);
    out = phonebit::engine::test::room_for(cpu.outputs(), batch);
    expected = out;
    cpu.forward(phonebit::engine::test::inputs_of(in), phonebit::engine::test::outputs_of(expected), batch);
  }
  void run(Network& network) {
    network.forward(phonebit::engine::test::inputs_of(in), phonebit::engine::test::outputs_of(out), images);
  }
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

void counts_tell_before_from_after() {
  phonebit::engine::CancelCount count{0};
  const phonebit::engine::Cancellation early(count);
  early.check();
  ++count;
  const phonebit::engine::Cancellation late(count);
  late.check();
  expect_error(ErrorCode::cancelled, {"cancelled"}, "a request after it", [&] { early.check(); });
  ++count;
  expect(code_of([&] { late.check(); }) == ErrorCode::cancelled, "the next request");
  phonebit::engine::Cancellation().check();
}

/// As many images as this network needs some two seconds for.
int long_batch(Network& network) {
  Batch few(64);
  few.run(network);  // warm
  const auto begin = Clock::now();
  few.run(network);
  return static_cast<int>(2000.0 / ms_since(begin) * few.images) + 64;
}

/// A long pass, and passes that wait behind it, all end by cancel(); what comes later does not.
void running_and_waiting_passes_end(const Options& options, const std::string& name) {
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
    waiters.emplace_back([&] {
      count(code_of([&] {
        network.forward(phonebit::engine::test::inputs_of(one.in), phonebit::engine::test::outputs_of(out),
                        1);
      }));
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // One would do, but a thread may not have begun yet on a busy machine.
  while (ended.load() < 3) {
    network.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  runner.join();
  for (std::thread& waiter : waiters) waiter.join();
  expect(cancelled.load() == 3, name + ": a running pass and two waiting ones are cancelled");
  const size_t image_bytes = batch.out[0].size() / static_cast<size_t>(batch.images);
  bool is_untouched = true;
  for (size_t at = batch.out[0].size() - image_bytes; at < batch.out[0].size(); ++at)
    is_untouched = is_untouched && batch.out[0][at] == std::byte{0xA7};
  expect(is_untouched, name + ": the last image was never computed");
  one.run(network);
  expect(one.out == one.expected, name + ": the next pass is right");
}

void idle_cancels_have_no_effect(const Options& options, const std::string& name) {
  Network network = load(options);
  Batch batch(3);
  for (int i = 0; i < 3; ++i) {
    network.cancel();
    batch.run(network);
    expect(batch.out == batch.expected, name + ": a pass after a cancel");
  }
}

/// Passes against cancels at any time: each is either cancelled or right.
void cancels_at_any_time(const Options& options, const std::string& name) {
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
  for (int pass = 0; pass < 100; ++pass) {
    for (auto& bytes : batch.out) bytes.assign(bytes.size(), std::byte{0});
    const auto code = code_of([&] { batch.run(network); });
    if (code == ErrorCode::cancelled) ++cancelled;
    if (!code && batch.out == batch.expected) ++right;
  }
  is_done.store(true);
  canceller.join();
  expect(right + cancelled == 100, name + ": " + std::to_string(right) + " passes are right and " +
                                       std::to_string(cancelled) + " cancelled, of 100");
  batch.run(network);
  expect(batch.out == batch.expected, name + ": the pass after them is right");
}

/// Everything else that takes a turn ends, too.
void other_calls_end(const Options& options, const std::string& name) {
  Network network = load(options);
  Batch batch(2);
  std::atomic<bool> is_done{false};
  std::optional<ErrorCode> code;
  std::thread runner([&] {
    code =
        code_of([&] { network.profile(phonebit::engine::test::inputs_of(batch.in), batch.images, 1 << 30); });
    is_done.store(true);
  });
  while (!is_done.load()) {
    network.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  runner.join();
  expect(code == ErrorCode::cancelled, name + ": profile() is cancelled");
}

void passes_are_measured(Options options, const std::string& name) {
  Network plain = load(options);
  Batch batch(4);
  batch.run(plain);
  expect_error(ErrorCode::input, {"profiling"}, name + ": without profiling", [&] { plain.last_profile(); });

  options.profiling = true;
  Network network = load(options);
  expect_error(ErrorCode::input, {"no forward pass yet"}, name + ": before the first pass",
               [&] { network.last_profile(); });
  std::vector<double> times;
  for (int pass = 0; pass < 3; ++pass) {
    const auto begin = Clock::now();
    batch.run(network);
    const double wall_ms = ms_since(begin);
    expect(batch.out == batch.expected, name + ": a measured pass gives the same");
    times = network.last_profile();
    expect(times.size() == network.layers().size(), name + ": a time for each layer");
    double sum = 0.0;
    bool is_sound = true;
    for (const double ms : times) {
      is_sound = is_sound && ms >= 0.0;
      sum += ms;
    }
    expect(is_sound && sum > 0.0 && sum <= wall_ms,
           name + ": layers take a part of the pass: " + std::to_string(sum) + " of " +
               std::to_string(wall_ms) + " ms");
  }
  network.profile(phonebit::engine::test::inputs_of(batch.in), batch.images, 1);
  expect(code_of([&] { network.forward({}, {}, 1); }) == ErrorCode::input, name + ": a refused pass");
  expect(network.last_profile() == times, name + ": other calls leave the last profile");
}

void check(const Options& options, const std::string& name) {
  try {
    idle_cancels_have_no_effect(options, name);
    cancels_at_any_time(options, name);
    other_calls_end(options, name);
    passes_are_measured(options, name);
  } catch (const Error& error) {
    expect(false, name + ": " + error.what());
  }
}

}  // namespace

int main() {
  counts_tell_before_from_after();
  Options options;
  options.threads = 2;
  running_and_waiting_passes_end(options, "cpu");
  check(options, "cpu");
  if (!phonebit::engine::opencl_devices().empty()) {
    options.cache_directory =
        (std::filesystem::temp_directory_path() / ("phonebit_passes_" + std::to_string(::getpid()))).string();
    options.device = "gpu";
    check(options, "gpu");
    options.device = "gpu+cpu";
    running_and_waiting_passes_end(options, "gpu+cpu");
    check(options, "gpu+cpu");
    for (const auto synchronization :
         {phonebit::engine::Synchronization::events, phonebit::engine::Synchronization::user_events}) {
      options.synchronization = synchronization;
      cancels_at_any_time(options, "gpu+cpu with events");
    }
    std::filesystem::remove_all(options.cache_directory);
  }
  return failures == 0 ? 0 : 1;
}
