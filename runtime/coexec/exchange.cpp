#include "coexec/exchange.h"

#include <algorithm>

namespace phonebit::engine::coexec {

namespace {

class CopyExchange : public Exchange {
 public:
  explicit CopyExchange(TensorViews& views) : views_(views) {}

  void enqueue_for_cpu(const Stage& stage, gpu::Queue& queue) override {
    for (const DataTransfer& transfer : stage.to_cpu) copy(true, transfer, queue);
  }
  void enqueue_from_cpu(const Stage& stage, gpu::Queue& queue) override {
    for (const DataTransfer& transfer : stage.to_gpu) copy(false, transfer, queue);
  }
  bool has_commands_for_cpu(const Stage& stage) const override { return !stage.to_cpu.empty(); }

 protected:
  TensorViews& views_;

 private:
  void copy(bool to_host, const DataTransfer& transfer, gpu::Queue& queue) {
    if (views_.is_one(transfer.tensor)) return;
    const gpu::DeviceMemory& device = views_.memory(transfer.tensor);
    const gpu::Region range = views_.range(transfer.tensor, transfer.part);
    std::byte* const host = views_.cpu_address(transfer.tensor);
    if (to_host)
      queue.read(device, range, host, false);
    else
      queue.write(device, range, host, false);
  }
};

/// Coherent memory: only tensors with two views are copied, by the CPU, which reaches both.
class SvmExchange final : public Exchange {
 public:
  explicit SvmExchange(TensorViews& views) : views_(views) {}

  void enqueue_for_cpu(const Stage&, gpu::Queue&) override {}
  void enqueue_from_cpu(const Stage&, gpu::Queue&) override {}
  bool can_run_ahead() const override { return true; }

  void begin_cpu(const Stage& stage) override { copy(stage.to_cpu, true); }
  void end_cpu(const Stage& stage) override { copy(stage.to_gpu, false); }

 private:
  void copy(const std::vector<DataTransfer>& transfers, bool is_for_cpu) {
    for (const DataTransfer& transfer : transfers) {
      if (views_.is_one(transfer.tensor)) continue;
      std::byte* const cpu = views_.cpu_address(transfer.tensor);
      std::byte* const gpu = views_.memory(transfer.tensor).address();
      copy_bytes(views_.range(transfer.tensor, transfer.part), is_for_cpu ? gpu : cpu,
                 is_for_cpu ? cpu : gpu);
    }
  }

  TensorViews& views_;
};

/// Memory of the driver that both reach, in turns: mapped while the CPU works with it (µLayer, CoDL). Tensors
/// with two views are copied.
class MapExchange final : public CopyExchange {
 public:
  MapExchange(const Schedule& schedule, TensorViews& views)
      : CopyExchange(views), schedule_(schedule), pointers_(views.mapped().size()) {}

  void enqueue_for_cpu(const Stage& stage, gpu::Queue& queue) override {
    CopyExchange::enqueue_for_cpu(stage, queue);
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const MappedMemory& mapped = views_.mapped()[i];
      if (mapped.stages.first != index(stage)) continue;
      const auto use = mapped.is_written ? gpu::Queue::MapUse::write : gpu::Queue::MapUse::read;
      pointers_[i] = queue.map(*mapped.memory, use, 0, mapped.bytes, false);
    }
  }

  void enqueue_from_cpu(const Stage& stage, gpu::Queue& queue) override {
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const MappedMemory& mapped = views_.mapped()[i];
      if (mapped.stages.last != index(stage)) continue;
      queue.unmap(*mapped.memory, pointers_[i]);
    }
    CopyExchange::enqueue_from_cpu(stage, queue);
  }

  void begin_cpu(const Stage& stage) override {
    for (size_t i = 0; i < pointers_.size(); ++i)
      if (views_.mapped()[i].stages.first == index(stage))
        views_.set_address(views_.mapped()[i].tensor, pointers_[i]);
  }

  bool has_commands_for_cpu(const Stage& stage) const override {
    const std::vector<MappedMemory>& mapped = views_.mapped();
    return CopyExchange::has_commands_for_cpu(stage) ||
           std::any_of(mapped.begin(), mapped.end(),
                       [&](const MappedMemory& memory) { return memory.stages.first == index(stage); });
  }

 private:
  int index(const Stage& stage) const { return static_cast<int>(&stage - schedule_.stages().data()); }

  const Schedule& schedule_;
  std::vector<std::byte*> pointers_;  // of views_.mapped(), in this inference
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(Sharing sharing, const Schedule& schedule, TensorViews& views) {
  switch (sharing) {
    case Sharing::copied:
      return std::make_unique<CopyExchange>(views);
    case Sharing::mapped:
      return std::make_unique<MapExchange>(schedule, views);
    default:
      return std::make_unique<SvmExchange>(views);
  }
}

}  // namespace phonebit::engine::coexec
