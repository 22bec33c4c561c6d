// What Android's performance hint sessions are told, with a stand-in for its library.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "check_error.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "threads/affinity.h"
#include "threads/performance_hint.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using std::chrono::nanoseconds;
using threads::PerformanceHint;
using threads::this_thread_number;
using threads::ThreadPool;

constexpr const char* library = FAKE_LIBRARY;

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

TEST_CASE("sessions are told durations and targets") {
  ThreadPool pool(2);
  wait_for_workers(pool);
  const std::string threads =
      std::to_string(pool.worker_numbers()[0]) + " " + std::to_string(this_thread_number());
  {
    PerformanceHint hint(library);
    hint.report(pool, nanoseconds(1000));
    CHECK(news() == "create 900: " + threads + "\nactual 1000\n");
    hint.report(pool, nanoseconds(1200));
    CHECK(news() == "actual 1200\n");
    hint.report(pool, nanoseconds(500));
    CHECK(news() == "target 450\nactual 500\n");
    std::thread([&] {
      hint.report(pool, nanoseconds(600));
      const std::string other =
          std::to_string(pool.worker_numbers()[0]) + " " + std::to_string(this_thread_number());
      CHECK(news() == "close\ncreate 450: " + other + "\nactual 600\n");
    }).join();
  }
  CHECK(news() == "close\n");
}

/// The environment makes the stand-in the library of that name.
TEST_CASE("networks report their inferences") {
  const Bytes file = small_model();
  Options options;
  options.device = "cpu";
  options.threads = 1;
  for (const auto hint : {Hint::none, Hint::power, Hint::performance}) {
    options.hint = hint;
    {
      Network network = Network::load_memory(file.data(), file.size(), options);
      const Content in = random_inputs(network.inputs(), 2);
      Content out = room_for(network.outputs(), 2);
      network.forward(inputs_of(in), outputs_of(out), 2);
    }
    const std::string told = news();
    if (hint != Hint::performance) {
      CHECK_MESSAGE(told.empty(), "other hints open no session");
      continue;
    }
    const std::string caller = ": " + std::to_string(this_thread_number()) + "\nactual ";
    CHECK(told.rfind("create ", 0) == 0);
    CHECK(told.c_str() == doctest::Contains(caller.c_str()));
    CHECK(told.c_str() == doctest::Contains("\nclose\n"));
  }
}

TEST_CASE("absence is harmless") {
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
    CHECK_MESSAGE(news().empty(), "nothing is told with ", variable);
    ::unsetenv(variable);
  }
}

}  // namespace
