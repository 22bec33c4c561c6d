// Threads stay on the processors that were asked for, and callers come back to theirs; hints decide how
// workers wait.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "check_error.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "threads/affinity.h"
#include "threads/thread_pool.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using threads::AffinityScope;
using threads::allowed_processors;
using threads::ThreadPool;
using Numbers = std::vector<int>;

bool contains(const Numbers& all, int one) { return std::find(all.begin(), all.end(), one) != all.end(); }

const Numbers mine = allowed_processors();

TEST_CASE("this system tells which processors a thread may use") { CHECK_FALSE(mine.empty()); }

TEST_SUITE_BEGIN("processors" * doctest::skip(mine.empty()));

TEST_CASE("scopes end") {
  {
    const AffinityScope scope({mine.back()});
    CHECK(scope.is_in_force());
    CHECK(allowed_processors() == Numbers{mine.back()});
    {
      const AffinityScope inner({mine.front()});
      CHECK(allowed_processors() == Numbers{mine.front()});
    }
    CHECK(allowed_processors() == Numbers{mine.back()});
  }
  CHECK(allowed_processors() == mine);
  const AffinityScope nothing({});
  CHECK(nothing.is_in_force());
  CHECK(allowed_processors() == mine);
  const AffinityScope refused({threads::available_processors() + 5000});
  CHECK_FALSE(refused.is_in_force());
  CHECK(allowed_processors() == mine);
}

/// Where each thread of a pool may run, seen from inside a loop that all of them take part in.
std::vector<Numbers> seen_inside(ThreadPool& pool) {
  std::vector<Numbers> seen(static_cast<size_t>(pool.threads()));
  std::atomic<int> begun{0};
  const AffinityScope caller(pool.cores());
  pool.parallel_for(pool.threads(), [&](int part) {
    begun.fetch_add(1);
    while (begun.load() < pool.threads()) std::this_thread::yield();
    seen[static_cast<size_t>(part)] = allowed_processors();
  });
  return seen;
}

TEST_CASE("workers stay on their cores") {
  for (const int core : {mine.front(), mine.back()}) {
    ThreadPool pool(3, {core});
    for (const auto pause : {0, 5}) {  // awake, and woken from sleep, where callers are kept clear of
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      for (const Numbers& seen : seen_inside(pool)) CHECK(seen == Numbers{core});
    }
  }
  ThreadPool pool(2, mine);
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const Numbers& seen : seen_inside(pool)) {
      const bool is_inside = std::all_of(seen.begin(), seen.end(), [&](int n) { return contains(mine, n); });
      CHECK_FALSE(seen.empty());
      CHECK(is_inside);
    }
  }
  CHECK(allowed_processors() == mine);
}

/// Where another thread may run now.
Numbers processors_of(int thread) {
  Numbers result;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return result;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) result.push_back(i);
  }
#else
  static_cast<void>(thread);
#endif
  return result;
}

/// Inferences by a thread that is watched meanwhile: it must be seen on its core, and be back afterwards.
void callers_stay_on_their_core(Network& network, int core) {
  const Content in = random_inputs(network.inputs(), 64);
  Content out = room_for(network.outputs(), 64);
  std::atomic<int> caller{0};
  std::atomic<bool> was_seen{false};
  std::thread inferences([&] {
    caller.store(threads::this_thread_number());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!was_seen.load() && std::chrono::steady_clock::now() < end)
      network.forward(inputs_of(in), outputs_of(out), 64);
    CHECK(allowed_processors() == mine);
    caller.store(-1);
  });
  for (int thread = 0; thread >= 0; thread = caller.load()) {
    if (thread > 0 && processors_of(thread) == Numbers{core}) was_seen.store(true);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  inferences.join();
  CHECK_MESSAGE(was_seen.load(), "a caller on its core during an inference");
}

TEST_CASE("networks use their cores") {
  const Bytes file = small_model();
  Options options;
  options.core_list = {mine.back()};
  Network network = Network::load_memory(file.data(), file.size(), options);
  CHECK(network.threads() == 1);
  options.threads = 2;
  Network two = Network::load_memory(file.data(), file.size(), options);
  CHECK(two.threads() == 2);
  if (mine.size() > 1) callers_stay_on_their_core(two, mine.back());
  options.threads = 0;
  for (const auto cores : {Cores::any, Cores::big, Cores::little}) {
    options.core_list.clear();
    options.cores = cores;
    CHECK(Network::load_memory(file.data(), file.size(), options).threads() >= 1);
  }
  Content in = random_inputs(two.inputs(), 1);
  Content out = room_for(two.outputs(), 1);
  two.forward(inputs_of(in), outputs_of(out));
  CHECK(allowed_processors() == mine);
  check_error(ErrorCode::input, {"input", "bytes"}, "an inference with a bad buffer",
              [&] { two.forward({{in[0].data(), 1}}, outputs_of(out)); });
  CHECK(allowed_processors() == mine);
  options.core_list = {100000};
  check_error(ErrorCode::input, {"processor 100000", std::to_string(mine.back())},
              "a core that does not exist", [&] { Network::load_memory(file.data(), file.size(), options); });
}

/// Waits until this process has used 20 ms of processor time, but no longer than `limit`; whether it has.
bool is_busy_within(std::chrono::milliseconds limit) {
  const auto used_ms = [begin = std::clock()] { return 1e3 * double(std::clock() - begin) / CLOCKS_PER_SEC; };
  const auto end = std::chrono::steady_clock::now() + limit;
  while (used_ms() < 20 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return used_ms() >= 20;
}

TEST_CASE("workers are as patient as asked") {
  {
    ThreadPool hasty(2, {}, std::chrono::microseconds(0));
    for (int loop = 0; loop < 50; ++loop) {
      std::atomic<int> count{0};
      hasty.parallel_for(5, [&](int) { count.fetch_add(1); });
      CHECK(count.load() == 5);
    }
    CHECK_FALSE_MESSAGE(is_busy_within(std::chrono::milliseconds(200)), "a worker without patience sleeps");
  }
  ThreadPool patient(2, {}, std::chrono::minutes(1));
  patient.parallel_for(2, [](int) {});
  CHECK_MESSAGE(is_busy_within(std::chrono::seconds(10)), "a patient worker waits awake");
}

TEST_SUITE_END();

}  // namespace
