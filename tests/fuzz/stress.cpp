// Threads that use one network at once, run and cancel passes, load and destroy: built with ThreadSanitizer.
//
// Usage: stress DEVICE PASSES FILE...: so many passes of each of 16 threads on each file's network. Tells how many
// passes there were.
#include <phonebit/phonebit_c.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "one_pass.h"

using namespace phonebit::fuzz;

namespace {

constexpr int kThreads = 16;

std::atomic<long> passes{0}, cancelled{0}, loads{0};
const char* device = nullptr;

phonebit_network* load(const char* path, int threads) {
  phonebit_options* options = nullptr;
  phonebit_network* network = nullptr;
  succeed(phonebit_options_create(&options), "options_create");
  succeed(phonebit_options_set_device(options, device), "set_device");
  succeed(phonebit_options_set_threads(options, threads), "set_threads");
  succeed(phonebit_network_load_path(path, options, &network), "load_path");
  phonebit_options_destroy(options);
  ++loads;
  return network;
}

void check(phonebit_status status, const OnePass& pass, const Outputs& expected) {
  ++passes;
  if (status == PHONEBIT_CANCELLED) {
    ++cancelled;
    return;
  }
  succeed(status, "forward");
  require(pass.outputs() == expected, "threads do not change results");
}

/// What one thread does; some also run passes in the background, or cancel.
void use(phonebit_network* network, const Outputs& expected, int thread, int count) {
  OnePass pass(network);
  for (int i = 0; i < count; ++i) {
    check(pass.run(), pass, expected);
    int32_t warnings = 0;
    auto memory = PHONEBIT_INIT(phonebit_memory_info);
    succeed(phonebit_network_warning_count(network, &warnings), "warning_count");
    succeed(phonebit_network_memory(network, &memory), "memory");
    if (thread % 4 == 0) {
      phonebit_job* job = nullptr;
      succeed(pass.start(&job), "forward_async");
      phonebit_status status = PHONEBIT_PENDING;
      while (status == PHONEBIT_PENDING) status = phonebit_job_wait(job, i % 3 - 1);
      check(status, pass, expected);
      phonebit_job_destroy(job);
    }
    if (thread == 1 && i % 7 == 0) succeed(phonebit_network_cancel(network), "cancel");
  }
}

/// Destroyed while jobs wait.
void destroy_busy(phonebit_network* network) {
  std::vector<OnePass> waiting;
  std::vector<phonebit_job*> jobs(3);
  for (phonebit_job*& job : jobs) {
    waiting.emplace_back(network);
    succeed(waiting.back().start(&job), "forward_async");
  }
  phonebit_network_destroy(network);
  for (phonebit_job* job : jobs) {
    const phonebit_status status = phonebit_job_wait(job, -1);
    require(status == PHONEBIT_OK || status == PHONEBIT_CANCELLED, "a job ends with its network");
    phonebit_job_destroy(job);
  }
}

void share(const char* path, int threads, int count) {
  phonebit_network* const network = load(path, threads);
  OnePass first(network);
  succeed(first.run(), "forward");
  const Outputs expected = first.outputs();
  std::vector<std::thread> users;
  for (int i = 0; i < kThreads; ++i) users.emplace_back([&, i] { use(network, expected, i, count); });
  for (std::thread& user : users) user.join();
  destroy_busy(network);
}

/// Networks of their own, at the same time.
void load_apart(const std::vector<const char*>& paths) {
  std::vector<std::thread> users;
  for (int i = 0; i < kThreads; ++i) {
    users.emplace_back([&, i] {
      for (const char* path : paths) {
        phonebit_network* const network = load(path, 1 + i % 3);
        OnePass pass(network);
        check(pass.run(), pass, pass.outputs());
        phonebit_network_destroy(network);
      }
    });
  }
  for (std::thread& user : users) user.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  device = argv[1];
  const std::vector<const char*> paths(argv + 3, argv + argc);
  for (const char* path : paths)
    for (const int threads : {1, 2, 4}) share(path, threads, std::atoi(argv[2]));
  load_apart(paths);
  std::printf("%ld passes of %d threads, %ld of them cancelled, %ld loads\n", passes.load(), kThreads,
              cancelled.load(), loads.load());
}
