// A kernel that ended the process is not used again: children of this process end, as if by a driver that crashes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "check_error.h"
#include "gpu/executor.h"
#include "gpu/first_use.h"
#include "gpu/self_test.h"
#include "null_device.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::gpu;
using namespace phonebit::engine::test;

constexpr const char* kOp = "binary_conv2d";
const KernelChoice kTiled{"bconv2d_tiled", {}}, kSplit{"bconv2d_split", {}};

/// The signal by which a child ended, or 0.
template <class Action>
int signal_of(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGABRT, SIG_DFL);  // without doctest's report
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// A self-test whose device ends the process at kTiled, with a cache folder.
struct Setting {
  std::shared_ptr<NullDevice> device = std::make_shared<NullDevice>();
  TemporaryFolder folder;
  ProgramCache programs{device, ""};
  SelfTest self_test() { return {device, programs, folder.path()}; }
  int crash(bool again = false) {
    return signal_of([&] {
      device->ends_the_process = kTiled.kernel;
      self_test().result(kOp, kTiled, false, again);
    });
  }
};

/// The path in a refusal, which ends with "when <path> is deleted".
std::string path_in(const std::string& refusal) {
  const size_t begin = refusal.rfind(" when ") + 6;
  return refusal.substr(begin, refusal.rfind(" is deleted") - begin);
}

void make_old(const std::string& path) {
  std::ifstream before(path);
  int count = 0;
  before >> count;
  REQUIRE(count > 0);
  std::ofstream(path) << count << " 1000\n";
}

TEST_CASE("a variant that ended the process is not tried again") {
  Setting setting;
  REQUIRE(setting.crash() == SIGABRT);
  const SelfTestResult refused = setting.self_test().result(kOp, kTiled, false);
  CHECK_FALSE(refused.passed);
  CHECK(contains(refused.detail, "ended during its first use"));
  CHECK(setting.device->calls.empty());
  // Others are.
  CHECK(contains(setting.self_test().result(kOp, kSplit, false).detail, "differ"));
  CHECK_FALSE(setting.device->calls.empty());
  // The answer is of no result that is kept: without the file it is tried.
  const std::string path = path_in(refused.detail);
  REQUIRE(::access(path.c_str(), F_OK) == 0);
  ::unlink(path.c_str());
  CHECK(contains(setting.self_test().result(kOp, kTiled, false).detail, "differ"));
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("one end counts for an hour, since a user may have killed the process, two count for good") {
  Setting setting;
  REQUIRE(setting.crash() == SIGABRT);
  const std::string path = path_in(setting.self_test().result(kOp, kTiled, false).detail);
  make_old(path);
  REQUIRE(setting.crash() == SIGABRT);
  make_old(path);
  const std::string detail = setting.self_test().result(kOp, kTiled, false).detail;
  CHECK(contains(detail, "more than once"));
  CHECK(path_in(detail) == path);
  // Who asks for it anew gets it.
  CHECK(setting.crash(true) == SIGABRT);
  CHECK(contains(setting.self_test().result(kOp, kTiled, false, true).detail, "differ"));
  CHECK(::access(path.c_str(), F_OK) != 0);
}

bool exists(const BinaryStore& store, const char* key) {
  return ::access(store.path(std::string("first use\n") + key).c_str(), F_OK) == 0;
}

TEST_CASE("first uses at one time do not disturb each other") {
  const TemporaryFolder folder;
  const BinaryStore store(folder.path());
  std::promise<void> is_begun, is_over;
  std::thread holder([&] {
    const FirstUse use(store, "a kernel");
    const FirstUse within(store, "a part of it");
    is_begun.set_value();
    is_over.get_future().wait();
  });
  is_begun.get_future().wait();
  CHECK(exists(store, "a kernel"));
  CHECK_FALSE(exists(store, "a part of it"));
  CHECK(FirstUse(store, "a kernel").refusal().empty());
  CHECK(signal_of([&] {
          const FirstUse use(store, "a kernel");
          ::raise(use.refusal().empty() ? SIGKILL : SIGTERM);
        }) == SIGKILL);
  CHECK(exists(store, "a kernel"));
  is_over.set_value();
  holder.join();
  CHECK_FALSE(exists(store, "a kernel"));
  CHECK(FirstUse(store, "a kernel").refusal().empty());
  CHECK(FirstUse(BinaryStore(""), "a kernel").refusal().empty());
}

TEST_CASE("a damaged file counts as none") {
  const TemporaryFolder folder;
  const BinaryStore store(folder.path());
  for (const char* const content : {"", "phonebit", "-1 0", "1"}) {
    CAPTURE(content);
    std::ofstream(store.path("first use\na kernel")) << content;
    CHECK(FirstUse(store, "a kernel").refusal().empty());
  }
}

}  // namespace
