// What Android's performance hint sessions are told, with a stand-in for its library.
//
//   test_performance_hint FAKE_LIBANDROID
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "claims.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "threads/affinity.h"
#include "threads/performance_hint.h"

namespace {

using phonebit::engine::threads::PerformanceHint;
using phonebit::engine::threads::this_thread_number;
using phonebit::engine::threads::ThreadPool;
using std::chrono::nanoseconds;

const char* library = nullptr;

/// The journal's lines since the last call.
std::string news() {
  static void* const handle = ::dlopen(library, RTLD_NOW);  // stays open, so that the journal does
  static size_t known = 0;
  const auto journal = reinterpret_cast<const char* (*)()>(::dlsym(handle, "fake_android_journal"));
  const std::string all = journal();
  const std::string result = all.substr(known);
  known = all.size();
  return result;
}

void wait_for_workers(const ThreadPool& pool) {
  for (const int number : pool.worker_numbers()) {
    if (number != 0) continue;
    std::this_thread::yield();
    return wait_for_workers(pool);
  }
}

void sessions_are_told_durations_and_targets() {
  ThreadPool pool(2);
  wait_for_workers(pool);
  const std::string threads =
      std::to_string(pool.worker_numbers()[0]) + " " + std::to_string(this_thread_number());
  {
    PerformanceHint hint(library);
    hint.report(pool, nanoseconds(1000));
    expect(news() == "create 900: " + threads + "\nactual 1000\n", "the first pass opens a session");
    hint.report(pool, nanoseconds(1200));
    expect(news() == "actual 1200\n", "a slower pass keeps the target");
    hint.report(pool, nanoseconds(500));
    expect(news() == "target 450\nactual 500\n", "a faster pass lowers it");
    std::thread([&] {
      hint.report(pool, nanoseconds(600));
      const std::string other =
          std::to_string(pool.worker_numbers()[0]) + " " + std::to_string(this_thread_number());
      expect(news() == "close\ncreate 450: " + other + "\nactual 600\n", "another caller, another session");
    }).join();
  }
  expect(news() == "close\n", "the end closes the session");
}

/// The environment makes the stand-in the library of that name.
void networks_report_their_passes() {
  const phonebit::engine::test::Bytes file = phonebit::engine::test::small_model();
  phonebit::engine::Options options;
  options.device = "cpu";
  options.threads = 1;
  for (const auto hint :
       {phonebit::engine::Hint::none, phonebit::engine::Hint::power, phonebit::engine::Hint::performance}) {
    options.hint = hint;
    {
      phonebit::engine::Network network =
          phonebit::engine::Network::load_memory(file.data(), file.size(), options);
      const phonebit::engine::test::Content in = phonebit::engine::test::random_inputs(network.inputs(), 2);
      phonebit::engine::test::Content out = phonebit::engine::test::room_for(network.outputs(), 2);
      network.forward(phonebit::engine::test::inputs_of(in), phonebit::engine::test::outputs_of(out), 2);
    }
    const std::string told = news();
    if (hint != phonebit::engine::Hint::performance) {
      expect(told.empty(), "other hints open no session");
      continue;
    }
    const std::string caller = ": " + std::to_string(this_thread_number()) + "\nactual ";
    expect(told.rfind("create ", 0) == 0 && told.find(caller) != std::string::npos &&
               told.find("\nclose\n") != std::string::npos,
           "a pass of a network is reported: " + told);
  }
}

void absence_is_harmless() {
  ThreadPool pool(1);
  for (const char* absent : {"libnowhere_to_be_found.so", "libc.so.6"}) {
    PerformanceHint hint(absent);
    hint.report(pool, nanoseconds(1000));
  }
  for (const char* variable : {"FAKE_ANDROID_NO_MANAGER", "FAKE_ANDROID_NO_SESSION"}) {
    ::setenv(variable, "1", 1);
    {
      PerformanceHint hint(library);
      hint.report(pool, nanoseconds(1000));
      hint.report(pool, nanoseconds(900));
    }
    expect(news().empty(), std::string("nothing is told with ") + variable);
    ::unsetenv(variable);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_performance_hint FAKE_LIBANDROID\n");
    return 2;
  }
  library = argv[1];
  sessions_are_told_durations_and_targets();
  networks_report_their_passes();
  absence_is_harmless();
  return failures == 0 ? 0 : 1;
}
