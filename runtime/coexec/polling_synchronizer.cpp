#include "coexec/polling_synchronizer.h"

#include <algorithm>
#include <new>
#include <thread>

#include "opencl/kernel_library.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {

namespace {

constexpr const char* kKernel = "poll_flags";
/// Numbers of stages start anew long before they overflow.
constexpr int kMostStages = 1 << 30;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

PollingSynchronizer::PollingSynchronizer(opencl::Context& context, opencl::ProgramCache& programs,
                                         std::chrono::milliseconds limit)
    : context_(context),
      memory_(context, sizeof(Flags), "synchronization flags", opencl::SvmMemory::with_atomics),
      kernel_(
          programs.kernel(kKernel, opencl::assemble(kKernel, {}), opencl::ProgramCache::Language::atomics)),
      limit_(limit),
      spins_(0) {
  new (memory_.data()) Flags{};
  check(api().clSetKernelArgSVMPointer(kernel_.get(), 0, memory_.data()), "clSetKernelArgSVMPointer",
        kKernel);
  spins_ = calibrated_spins();
}

/// How long a spin takes differs a hundredfold between devices, and a kernel has no clock. The quickest of
/// some trials counts, and generously: the CPU keeps the time, this only ends what it cannot.
int PollingSynchronizer::calibrated_spins() {
  constexpr int kTrial = 1 << 14, kTrials = 4, kGenerosity = 4;
  double quickest_ms = 1e9;
  for (int trial = 0; trial < kTrials; ++trial) {
    reset_flags();
    const auto begin = std::chrono::steady_clock::now();
    enqueue(1, 1, kTrial);
    check(api().clFinish(context_.queue()), "clFinish");
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    quickest_ms = std::min(quickest_ms, elapsed.count());
    if (flags().is_timed_out != 1)
      fail(ErrorCode::device, "%s: kernel %s does not notice a time-out", context_.device().name.c_str(),
           kKernel);
  }
  reset_flags();
  const double spins =
      kGenerosity * kTrial * static_cast<double>(limit_.count()) / std::max(quickest_ms, 1e-3);
  return static_cast<int>(std::min(spins + 1.0, 2e9));
}

void PollingSynchronizer::reset_flags() {
  flags().gpu = 0;
  flags().cpu = 0;
  flags().is_timed_out = 0;
  base_ = 1;  // so that flags of 0 mean no stage
  stages_ = reached_ = 0;
}

void PollingSynchronizer::begin(int stages) {
  base_ += stages_;
  if (base_ > kMostStages) {
    check(api().clFinish(context_.queue()), "clFinish");
    reset_flags();
  }
  stages_ = stages;
}

void PollingSynchronizer::enqueue(int reached, int awaited, int spins) {
  const auto set = [&](cl_uint position, int value) {
    check(api().clSetKernelArg(kernel_.get(), position, sizeof value, &value), "clSetKernelArg", kKernel);
  };
  set(1, reached);
  set(2, awaited);
  set(3, spins);
  const size_t one = 1;
  check(api().clEnqueueNDRangeKernel(context_.queue(), kernel_.get(), 1, nullptr, &one, &one, 0, nullptr,
                                     nullptr),
        "clEnqueueNDRangeKernel", kKernel);
}

void PollingSynchronizer::enqueue_point(int cpu_stage, int awaited) {
  if (cpu_stage >= 0) reached_ = base_ + cpu_stage;
  enqueue(reached_, awaited >= 0 ? base_ + awaited : 0, spins_);
}

void PollingSynchronizer::wait_for_gpu(int cpu_stage) {
  const int reached = base_ + cpu_stage;
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  for (int spin = 1; flags().gpu.load(std::memory_order_acquire) < reached; ++spin) {
    relax();
    if (spin % 1024 != 0) continue;
    if (std::chrono::steady_clock::now() > deadline)
      fail(ErrorCode::device, "the CPU waited more than %lld ms for the GPU at stage %d",
           static_cast<long long>(limit_.count()), cpu_stage);
    // The GPU may be a thread of this processor.
    if (spin % 65536 == 0) std::this_thread::yield();
  }
  if (flags().is_timed_out.load(std::memory_order_acquire) != 0)
    fail(ErrorCode::device, "the GPU waited more than about %lld ms for the CPU before stage %d",
         static_cast<long long>(limit_.count()), cpu_stage);
}

void PollingSynchronizer::finish_cpu(int stage) {
  flags().cpu.store(base_ + stage, std::memory_order_release);
}

void PollingSynchronizer::release() noexcept { flags().cpu.store(INT32_MAX, std::memory_order_release); }

}  // namespace phonebit::engine::coexec
