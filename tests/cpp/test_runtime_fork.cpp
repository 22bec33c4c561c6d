// A forked child computes right or is told why it cannot; it never waits for threads that stayed with its
// parent.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "check_error.h"
#include "engine/network.h"
#include "network_buffers.h"
#include "test_runtime_model.h"
#include "threads/turn_lock.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using threads::TurnLock;

enum Outcome { same_result = 0, told_why = 1, other_result = 2, other_error = 3, hung = 4 };

/// What `action` comes to in a child, which has ten seconds for it.
template <class Action>
Outcome outcome_in_child(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    try {
      ::_exit(action() ? same_result : other_result);
    } catch (const Error& error) {
      const bool is_clear = std::string(error.what()).find("load the network again") != std::string::npos;
      ::_exit(error.code() == ErrorCode::device && is_clear ? told_why : other_error);
    } catch (...) {
      ::_exit(other_error);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : hung;
}

TEST_CASE("a lock that is held elsewhere is an error") {
  TurnLock lock;
  const auto takes_it = [&] {
    const std::lock_guard<TurnLock> own(lock);
    return true;
  };
  CHECK(outcome_in_child(takes_it) == same_result);
  std::atomic<bool> is_held{false}, is_over{false};
  std::thread holder([&] {
    const std::lock_guard<TurnLock> own(lock);
    is_held = true;
    while (!is_over) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  CHECK(outcome_in_child(takes_it) == told_why);
  is_over = true;
  holder.join();
  CHECK(outcome_in_child(takes_it) == same_result);
}

TEST_CASE("a network survives a fork during an inference") {
  static const Bytes file = small_model();
  Options options;
  options.threads = 2;
  Network network = Network::load_memory(file.data(), file.size(), options);
  const Content in = random_inputs(network.inputs(), 1);
  Content expected = room_for(network.outputs(), 1);
  const auto run = [&](Content& out) { network.forward(inputs_of(in), outputs_of(out), 1); };
  run(expected);
  const auto is_right = [&] {
    Content out = room_for(network.outputs(), 1);
    run(out);
    return out == expected;
  };
  CHECK(outcome_in_child(is_right) == same_result);

  std::atomic<bool> is_over{false};
  std::thread other([&] {
    Content out = room_for(network.outputs(), 1);
    while (!is_over) run(out);
  });
  for (int i = 0; i < 30; ++i) {
    const Outcome outcome = outcome_in_child(is_right);
    CHECK_MESSAGE((outcome == same_result || outcome == told_why), "a fork during an inference: outcome ",
                  outcome);
  }
  is_over = true;
  other.join();
}

}  // namespace
