// Shared virtual memory and the synchronization of device and host on it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "check_error.h"
#include "gpu/kernel_library.h"
#include "opencl/cl_functions.h"
#include "opencl/program_cache.h"
#include "opencl/svm.h"
#include "opencl_device.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::opencl;

// As in poll_flags.cl: words a cache line apart.
constexpr size_t kGpu = 0, kCpu = 16, kTimedOut = 32, kWords = 48;

class SyncPoint {
 public:
  explicit SyncPoint(const std::shared_ptr<Context>& context)
      : context_(context),
        programs_(context, ""),
        memory_(*context, kWords * sizeof(int), "flags", SvmMemory::with_atomics),
        flags_(static_cast<std::atomic<int>*>(memory_.data())),
        kernel_(programs_.kernel("poll_flags", assemble("poll_flags", {}), ProgramCache::Language::atomics)) {
    for (size_t i = 0; i < kWords; ++i) flags_[i] = 0;
  }

  std::atomic<int>& flag(size_t word) { return flags_[word]; }

  void enqueue(cl_int reached, cl_int awaited, cl_int spins) {
    check(api().clSetKernelArgSVMPointer(kernel_.get(), 0, memory_.data()), "clSetKernelArgSVMPointer");
    cl_uint position = 1;
    for (const cl_int number : {reached, awaited, spins})
      check(api().clSetKernelArg(kernel_.get(), position++, sizeof number, &number), "clSetKernelArg");
    const size_t one = 1;
    check(api().clEnqueueNDRangeKernel(context_->queue(), kernel_.get(), 1, nullptr, &one, &one, 0, nullptr,
                                       nullptr),
          "clEnqueueNDRangeKernel");
    check(api().clFlush(context_->queue()), "clFlush");
  }
  void finish() { check(api().clFinish(context_->queue()), "clFinish"); }

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
  SvmMemory memory_;
  std::atomic<int>* flags_;
  Handle<cl_kernel> kernel_;
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
  const opencl::Device& device = context->device();
  if (!device.has_svm_fine) {
    check_error(ErrorCode::device, {"no fine-grained"}, "a device without",
                [&] { SvmMemory(*context, 64, "x"); });
  } else {
    check_error(ErrorCode::device, {"too many"}, "more than there is",
                [&] { SvmMemory(*context, std::numeric_limits<size_t>::max() / 2, "x"); });
    if (device.has_svm_atomics) check_sync_points(context);
  }
  MESSAGE(device.name, ": shared virtual memory ",
          (device.has_svm_atomics ? "with atomics"
           : device.has_svm_fine  ? "without atomics"
                                  : "absent"));
}

}  // namespace
