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

#include "claims.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "threads/affinity.h"
#include "threads/thread_pool.h"

namespace {

using phonebit::engine::Network;
using phonebit::engine::Options;
using phonebit::engine::threads::AffinityScope;
using phonebit::engine::threads::allowed_processors;
using phonebit::engine::threads::ThreadPool;
using Numbers = std::vector<int>;

bool contains(const Numbers& all, int one) { return std::find(all.begin(), all.end(), one) != all.end(); }

void scopes_end(const Numbers& mine) {
  {
    const AffinityScope scope({mine.back()});
    expect(scope.is_in_force() && allowed_processors() == Numbers{mine.back()}, "inside a scope");
    {
      const AffinityScope inner({mine.front()});
      expect(allowed_processors() == Numbers{mine.front()}, "inside an inner scope");
    }
    expect(allowed_processors() == Numbers{mine.back()}, "after an inner scope");
  }
  expect(allowed_processors() == mine, "after a scope");
  const AffinityScope nothing({});
  expect(nothing.is_in_force() && allowed_processors() == mine, "no processors change nothing");
  const AffinityScope refused({phonebit::engine::threads::available_processors() + 5000});
  expect(!refused.is_in_force() && allowed_processors() == mine, "a processor that does not exist");
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

void workers_stay_on_their_cores(const Numbers& mine) {
  for (const int core : {mine.front(), mine.back()}) {
    ThreadPool pool(3, {core});
    for (const auto pause : {0, 5}) {  // awake, and woken from sleep, where callers are kept clear of
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      for (const Numbers& seen : seen_inside(pool)) expect(seen == Numbers{core}, "a thread on one core");
    }
  }
  ThreadPool pool(2, mine);
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const Numbers& seen : seen_inside(pool)) {
      const bool is_inside = std::all_of(seen.begin(), seen.end(), [&](int n) { return contains(mine, n); });
      expect(!seen.empty() && is_inside, "a thread on all cores");
    }
  }
  expect(allowed_processors() == mine, "the caller is where it was");
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

/// Passes by a thread that is watched meanwhile: it must be seen on its core, and be back afterwards.
void callers_stay_on_their_core(Network& network, int core, const Numbers& mine) {
  const phonebit::engine::test::Content in = phonebit::engine::test::random_inputs(network.inputs(), 64);
  phonebit::engine::test::Content out = phonebit::engine::test::room_for(network.outputs(), 64);
  std::atomic<int> caller{0};
  std::atomic<bool> was_seen{false};
  std::thread passes([&] {
    caller.store(phonebit::engine::threads::this_thread_number());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!was_seen.load() && std::chrono::steady_clock::now() < end)
      network.forward(phonebit::engine::test::inputs_of(in), phonebit::engine::test::outputs_of(out), 64);
    expect(allowed_processors() == mine, "a caller after its passes");
    caller.store(-1);
  });
  for (int thread = 0; thread >= 0; thread = caller.load()) {
    if (thread > 0 && processors_of(thread) == Numbers{core}) was_seen.store(true);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  passes.join();
  expect(was_seen.load(), "a caller on its core during a pass");
}

void networks_use_their_cores(const Numbers& mine) {
  const phonebit::engine::test::Bytes file = phonebit::engine::test::small_model();
  Options options;
  options.core_list = {mine.back()};
  Network network = Network::load_memory(file.data(), file.size(), options);
  expect(network.threads() == 1, "a thread for each chosen core");
  options.threads = 2;
  Network two = Network::load_memory(file.data(), file.size(), options);
  expect(two.threads() == 2, "as many threads as asked for");
  if (mine.size() > 1) callers_stay_on_their_core(two, mine.back(), mine);
  options.threads = 0;
  for (const auto cores :
       {phonebit::engine::Cores::any, phonebit::engine::Cores::big, phonebit::engine::Cores::little}) {
    options.core_list.clear();
    options.cores = cores;
    expect(Network::load_memory(file.data(), file.size(), options).threads() >= 1, "a kind of cores");
  }
  phonebit::engine::test::Content in = phonebit::engine::test::random_inputs(two.inputs(), 1);
  phonebit::engine::test::Content out = phonebit::engine::test::room_for(two.outputs(), 1);
  two.forward(phonebit::engine::test::inputs_of(in), phonebit::engine::test::outputs_of(out));
  expect(allowed_processors() == mine, "after a pass");
  expect_error(phonebit::engine::ErrorCode::input, {"input", "bytes"}, "a pass with a bad buffer",
               [&] { two.forward({{in[0].data(), 1}}, phonebit::engine::test::outputs_of(out)); });
  expect(allowed_processors() == mine, "after a refused pass");
  options.core_list = {100000};
  expect_error(phonebit::engine::ErrorCode::input, {"processor 100000", std::to_string(mine.back())},
               "a core that does not exist",
               [&] { Network::load_memory(file.data(), file.size(), options); });
}

/// Waits until this process has used 20 ms of processor time, but no longer than `limit`; whether it has.
bool is_busy_within(std::chrono::milliseconds limit) {
  const auto used_ms = [begin = std::clock()] { return 1e3 * double(std::clock() - begin) / CLOCKS_PER_SEC; };
  const auto end = std::chrono::steady_clock::now() + limit;
  while (used_ms() < 20 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return used_ms() >= 20;
}

void workers_are_as_patient_as_asked() {
  {
    ThreadPool hasty(2, {}, std::chrono::microseconds(0));
    for (int loop = 0; loop < 50; ++loop) {
      std::atomic<int> count{0};
      hasty.parallel_for(5, [&](int) { count.fetch_add(1); });
      expect(count.load() == 5, "a loop that wakes a worker without patience");
    }
    expect(!is_busy_within(std::chrono::milliseconds(200)), "a worker without patience sleeps");
  }
  ThreadPool patient(2, {}, std::chrono::minutes(1));
  patient.parallel_for(2, [](int) {});
  expect(is_busy_within(std::chrono::seconds(10)), "a patient worker waits awake");
}

}  // namespace

int main() {
  const Numbers mine = allowed_processors();
  if (mine.empty()) {
    std::printf("skipped: this system does not tell which processors a thread may use\n");
    return 0;
  }
  scopes_end(mine);
  workers_stay_on_their_cores(mine);
  networks_use_their_cores(mine);
  workers_are_as_patient_as_asked();
  return failures == 0 ? 0 : 1;
}
