// Shared virtual memory and the synchronization of device and host on it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "check_error.h"
#include "gpu/kernel_library.h"
#include "gpu/program_cache.h"
#include "opencl/context.h"
#include "opencl_device.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::gpu;
using phonebit::engine::opencl::Context;
using phonebit::engine::opencl::devices;

// As in poll_flags.cl: words a cache line apart.
constexpr size_t kGpu = 0, kCpu = 16, kTimedOut = 32, kWords = 48;

class SyncPoint {
 public:
  explicit SyncPoint(const std::shared_ptr<Context>& context)
      : context_(context),
        programs_(context, ""),
        memory_(context->buffer(kWords * sizeof(int), nullptr, "flags", Device::Use::shared_with_atomics)),
        flags_(reinterpret_cast<std::atomic<int>*>(memory_->address())),
        kernel_(programs_.kernel("poll_flags", assemble("poll_flags", {}), Language::atomics)) {
    for (size_t i = 0; i < kWords; ++i) flags_[i] = 0;
  }

  std::atomic<int>& flag(size_t word) { return flags_[word]; }

  void enqueue(int reached, int awaited, int spins) {
    kernel_->bind(0, *memory_);
    unsigned position = 1;
    for (const int number : {reached, awaited, spins}) kernel_->bind(position++, number);
    const size_t one = 1;
    context_->queue().launch(*kernel_, {1, &one, &one}, nullptr);
    context_->queue().flush();
  }
  void finish() { context_->queue().finish(); }

  bool sees(size_t word, int value) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (flags_[word].load(std::memory_order_acquire) < value) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::shared_ptr<Context> context_;
  ProgramCache programs_;
  std::unique_ptr<DeviceMemory> memory_;
  std::atomic<int>* flags_;
  std::unique_ptr<Kernel> kernel_;
};

void check_sync_points(const std::shared_ptr<Context>& context) {
  constexpr int kForever = 2000000000;
  SyncPoint sync_point(context);
  sync_point.enqueue(1, 0, 1);
  sync_point.finish();
  CHECK(sync_point.flag(kGpu) == 1);
  CHECK(sync_point.flag(kTimedOut) == 0);

  // Many synchronizations in one queue, each side ahead of the other in turn.
  for (int stage = 2; stage < 50; ++stage) sync_point.enqueue(stage, stage, kForever);
  for (int stage = 2; stage < 50; ++stage) {
    CHECK_MESSAGE(sync_point.sees(kGpu, stage), "the device reaches stage ", stage);
    CHECK_MESSAGE((stage % 7 != 0 || sync_point.flag(kGpu) == stage), "the device waits in stage ", stage);
    sync_point.flag(kCpu).store(stage, std::memory_order_release);
  }
  sync_point.finish();
  CHECK(sync_point.flag(kGpu) == 49);
  CHECK(sync_point.flag(kTimedOut) == 0);

  sync_point.enqueue(50, 50, 1000);
  sync_point.enqueue(51, 51, kForever);
  sync_point.finish();
  CHECK(sync_point.flag(kTimedOut) == 1);
  CHECK(sync_point.flag(kGpu) == 51);
}

TEST_CASE("shared virtual memory") {
  if (!has_opencl_device()) return;
  const std::shared_ptr<Context> context = Context::create(devices()[0]);
  const DeviceFacts& device = context->facts();
  if (!device.has_svm_fine) {
    check_error(ErrorCode::device, {"no fine-grained"}, "a device without",
                [&] { context->buffer(64, nullptr, "x", Device::Use::shared); });
  } else {
    check_error(ErrorCode::device, {"too many"}, "more than there is", [&] {
      context->buffer(std::numeric_limits<size_t>::max() / 2, nullptr, "x", Device::Use::shared);
    });
    if (device.has_svm_atomics) check_sync_points(context);
  }
  MESSAGE(device.name, ": shared virtual memory ",
          (device.has_svm_atomics ? "with atomics"
           : device.has_svm_fine  ? "without atomics"
                                  : "absent"));
}

}  // namespace
