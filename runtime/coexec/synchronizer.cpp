#include "coexec/synchronizer.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "gpu/kernel_library.h"
#include "types/fail.h"

namespace phonebit::engine::coexec {
namespace {

/// Looks at an event before the CPU sleeps until it comes: some tenths of a millisecond.
constexpr int kMaxLooks = 1 << 12;

/// By events, what every device has: the CPU waits for events of the GPU, of its last kernel where that
/// is known, since a marker is one more command. For the GPU's waiting there are two ways: commands are
/// enqueued only when the CPU has done its part (the host decides), or they are enqueued early after user
/// events.
class EventSynchronizer final : public Synchronizer {
 public:
  EventSynchronizer(gpu::Device& device, bool is_ahead) : device_(device), is_ahead_(is_ahead) {}
  ~EventSynchronizer() override { release(); }

  void begin(int stages, gpu::Queue& queue) override {
    release();
    queue_ = &queue;
    host_events_.clear();
    host_events_.resize(is_ahead_ ? static_cast<size_t>(stages) : 0);
    finished_ = -1;
  }

  const gpu::Event* enqueue_point(int cpu_stage, int awaited, gpu::Events& events, bool is_last) override {
    if (cpu_stage >= 0 && !is_last) queue_->mark(events);
    const gpu::Event* const point = cpu_stage >= 0 ? events.back().get() : nullptr;
    if (awaited < 0 || awaited <= finished_ || !is_ahead_) return point;
    std::unique_ptr<gpu::HostEvent>& event = host_events_[static_cast<size_t>(awaited)];
    if (!event) event = device_.new_host_event();
    queue_->wait_for(*event);
    return point;
  }

  bool can_run_ahead() const override { return is_ahead_; }

  /// Awake at first: to fall asleep costs more than most waits take. The last call throws if something is wrong.
  void wait_for_gpu(int, const gpu::Event* point) override {
    for (int look = 0; look < kMaxLooks && !point->is_over(); ++look) {
    }
    point->wait();
  }

  void finish_cpu(int stage) override {
    finished_ = stage;
    if (is_ahead_ && host_events_[static_cast<size_t>(stage)])
      host_events_[static_cast<size_t>(stage)]->complete();
  }

  void release() noexcept override {
    for (size_t i = 0; i < host_events_.size(); ++i) try {
        if (host_events_[i] && static_cast<int>(i) > finished_) host_events_[i]->complete();
      } catch (const Error&) {  // the failure before it is reported
      }
  }

 private:
  gpu::Device& device_;
  bool is_ahead_;
  gpu::Queue* queue_ = nullptr;                               // of this inference
  std::vector<std::unique_ptr<gpu::HostEvent>> host_events_;  // by the CPU's stage
  int finished_ = -1;                                         // stages that the CPU has finished
};

constexpr const char* kKernel = "poll_flags";
/// Numbers of stages start anew long before they overflow.
constexpr int kMaxStages = 1 << 30;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

/// By flags in shared virtual memory (Fine-Grained Co-Execution, section 4): a kernel of one work-item reports
/// where the GPU is and waits for the CPU, which does the same: no command ends or is enqueued at a point of
/// synchronization. Both waits have a limit.
class PollingSynchronizer final : public Synchronizer {
 public:
  PollingSynchronizer(gpu::Device& device, gpu::ProgramCache& programs, std::chrono::milliseconds limit)
      : device_(device),
        queue_(&device.queue()),
        memory_(device.buffer(sizeof(Flags), nullptr, "synchronization flags",
                              gpu::Device::Use::shared_with_atomics)),
        kernel_(programs.kernel(kKernel, gpu::assemble(kKernel, {}), gpu::Language::atomics)),
        limit_(limit),
        spins_(0) {
    new (memory_->address()) Flags{};
    kernel_->bind(0, *memory_);
    spins_ = calibrated_spins();
  }

  void begin(int stages, gpu::Queue& queue) override {
    base_ += stages_;
    if (base_ > kMaxStages) {
      queue_->finish();
      reset_flags();
    }
    stages_ = stages;
    queue_ = &queue;
  }

  const gpu::Event* enqueue_point(int cpu_stage, int awaited, gpu::Events&, bool) override {
    if (cpu_stage >= 0) reached_ = base_ + cpu_stage;
    enqueue(reached_, awaited >= 0 ? base_ + awaited : 0, spins_);
    return nullptr;
  }

  bool can_run_ahead() const override { return true; }

  void wait_for_gpu(int cpu_stage, const gpu::Event*) override {
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

  void finish_cpu(int stage) override { flags().cpu.store(base_ + stage, std::memory_order_release); }

  void release() noexcept override { flags().cpu.store(INT32_MAX, std::memory_order_release); }

 private:
  /// What the kernel shares with us, as bnn_kernels/coexec/poll_flags.cl lays it out.
  struct Flags {
    alignas(64) std::atomic<int32_t> gpu;
    alignas(64) std::atomic<int32_t> cpu;
    alignas(64) std::atomic<int32_t> is_timed_out;
  };

  Flags& flags() const { return *reinterpret_cast<Flags*>(memory_->address()); }

  void reset_flags() {
    flags().gpu = 0;
    flags().cpu = 0;
    flags().is_timed_out = 0;
    base_ = 1;  // so that flags of 0 mean no stage
    stages_ = reached_ = 0;
  }

  void enqueue(int reached, int awaited, int spins) {
    kernel_->bind(1, reached);
    kernel_->bind(2, awaited);
    kernel_->bind(3, spins);
    const size_t one = 1;
    queue_->launch(*kernel_, {1, &one, &one});
  }

  /// How long a spin takes differs a hundredfold between devices, and a kernel has no clock. The quickest of
  /// some runs counts, several times: the CPU keeps the time, this limit only ends what the CPU cannot.
  int calibrated_spins() {
    constexpr int kSpins = 1 << 14, kRuns = 4, kGenerosity = 4;
    double quickest_ms = 1e9;
    for (int run = 0; run < kRuns; ++run) {
      reset_flags();
      const auto begin = std::chrono::steady_clock::now();
      enqueue(1, 1, kSpins);
      queue_->finish();
      const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
      quickest_ms = std::min(quickest_ms, elapsed.count());
      if (flags().is_timed_out != 1)
        fail(ErrorCode::device, "%s: kernel %s does not notice a time-out", device_.facts().name.c_str(),
             kKernel);
    }
    reset_flags();
    const double spins =
        kGenerosity * kSpins * static_cast<double>(limit_.count()) / std::max(quickest_ms, 1e-3);
    return static_cast<int>(std::min(spins + 1.0, 2e9));
  }

  gpu::Device& device_;
  gpu::Queue* queue_;  // of this inference
  std::unique_ptr<gpu::DeviceMemory> memory_;
  std::unique_ptr<gpu::Kernel> kernel_;
  std::chrono::milliseconds limit_;
  int spins_;
  int base_ = 0;     // flags count stages over all inferences: stage s of this one is base_ + s
  int stages_ = 0;   // of this inference
  int reached_ = 0;  // what the GPU's flag will be when it has run what is enqueued
};

}  // namespace

std::unique_ptr<Synchronizer> make_synchronizer(Synchronization kind, gpu::Device& device,
                                                gpu::ProgramCache& programs,
                                                std::chrono::milliseconds limit) {
  if (kind == Synchronization::polling) return std::make_unique<PollingSynchronizer>(device, programs, limit);
  return std::make_unique<EventSynchronizer>(device, kind == Synchronization::ahead);
}

}  // namespace phonebit::engine::coexec
