#include "coexec/exchange.h"

#include <algorithm>

#include "coexec/region.h"

namespace phonebit::engine::coexec {

using loader::Model;

namespace {

/// A region of a buffer as the "Rect" commands want it.
struct Rect {
  size_t origin[3], region[3];
  size_t pitch;

  explicit Rect(const Region& bytes)
      : origin{bytes.offset % bytes.pitch, bytes.offset / bytes.pitch, 0},
        region{bytes.run_bytes, bytes.runs, 1},
        pitch(bytes.pitch) {}
};

/// Enqueues a copy of a region between the GPU's view of a tensor and the host's. Whole rows are one run, whose
/// pitch is its length: then an origin in rows need not be a whole number of pitches.
void enqueue_copy(bool to_host, cl_command_queue queue, const Region& region, cl_mem buffer, std::byte* host,
                  const char* name) {
  const bool is_one_run = region.runs == 1;
  const size_t offset = region.offset, bytes = region.run_bytes;
  const Rect rect(region);
  const size_t* const at = rect.origin;
  if (to_host)
    check(is_one_run
              ? api().clEnqueueReadBuffer(queue, buffer, 0, offset, bytes, host + offset, 0, nullptr, nullptr)
              : api().clEnqueueReadBufferRect(queue, buffer, 0, at, at, rect.region, rect.pitch, 0,
                                              rect.pitch, 0, host, 0, nullptr, nullptr),
          "clEnqueueReadBuffer", name);
  else
    check(is_one_run ? api().clEnqueueWriteBuffer(queue, buffer, 0, offset, bytes, host + offset, 0, nullptr,
                                                  nullptr)
                     : api().clEnqueueWriteBufferRect(queue, buffer, 0, at, at, rect.region, rect.pitch, 0,
                                                      rect.pitch, 0, host, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer", name);
}

class CopyExchange : public Exchange {
 public:
  CopyExchange(const Model& model, TensorViews& views) : model_(model), views_(views) {}

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_cpu) copy(true, handover, queue);
  }
  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_gpu) copy(false, handover, queue);
  }
  bool has_commands_for_cpu(const Stage& stage) const override { return !stage.to_cpu.empty(); }

 protected:
  const Model& model_;
  TensorViews& views_;

 private:
  void copy(bool to_host, const Handover& handover, cl_command_queue queue) {
    if (views_.is_one(handover.tensor)) return;
    enqueue_copy(to_host, queue, views_.region(handover.tensor, handover.part),
                 views_.memory(handover.tensor).buffer, views_.stored_address(handover.tensor),
                 model_.tensor(handover.tensor).name.c_str());
  }
};

/// Coherent memory: only tensors with two views are copied, by the CPU, which reaches both.
class SvmExchange final : public Exchange {
 public:
  explicit SvmExchange(TensorViews& views) : views_(views) {}

  void enqueue_for_cpu(const Stage&, cl_command_queue) override {}
  void enqueue_from_cpu(const Stage&, cl_command_queue) override {}
  bool can_run_ahead() const override { return true; }

  void begin_cpu(const Stage& stage) override { copy(stage.to_cpu, true); }
  void end_cpu(const Stage& stage) override { copy(stage.to_gpu, false); }

 private:
  void copy(const std::vector<Handover>& handovers, bool is_for_cpu) {
    for (const Handover& handover : handovers) {
      if (views_.is_one(handover.tensor)) continue;
      std::byte* const cpu = views_.stored_address(handover.tensor);
      auto* const gpu = static_cast<std::byte*>(views_.memory(handover.tensor).svm);
      copy_region(views_.region(handover.tensor, handover.part), is_for_cpu ? gpu : cpu,
                  is_for_cpu ? cpu : gpu);
    }
  }

  TensorViews& views_;
};

/// Memory of the driver that both reach, in turns: mapped while the CPU works with it (µLayer, CoDL). Tensors
/// with two views are copied.
class MapExchange final : public CopyExchange {
 public:
  MapExchange(const Model& model, const Schedule& schedule, TensorViews& views)
      : CopyExchange(model, views), schedule_(schedule), pointers_(views.mapped().size()) {}

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    CopyExchange::enqueue_for_cpu(stage, queue);
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const MappedMemory& mapped = views_.mapped()[i];
      if (mapped.stages.first != index(stage)) continue;
      cl_int status = 0;
      pointers_[i] = api().clEnqueueMapBuffer(
          queue, mapped.buffer, 0, mapped.is_written ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, 0,
          mapped.bytes, 0, nullptr, nullptr, &status);
      check(status, "clEnqueueMapBuffer", name(mapped));
    }
  }

  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const MappedMemory& mapped = views_.mapped()[i];
      if (mapped.stages.last != index(stage)) continue;
      check(api().clEnqueueUnmapMemObject(queue, mapped.buffer, pointers_[i], 0, nullptr, nullptr),
            "clEnqueueUnmapMemObject", name(mapped));
    }
    CopyExchange::enqueue_from_cpu(stage, queue);
  }

  void begin_cpu(const Stage& stage) override {
    for (size_t i = 0; i < pointers_.size(); ++i)
      if (views_.mapped()[i].stages.first == index(stage))
        views_.set_address(views_.mapped()[i].tensor, static_cast<std::byte*>(pointers_[i]));
  }

  bool has_commands_for_cpu(const Stage& stage) const override {
    const std::vector<MappedMemory>& mapped = views_.mapped();
    return CopyExchange::has_commands_for_cpu(stage) ||
           std::any_of(mapped.begin(), mapped.end(),
                       [&](const MappedMemory& memory) { return memory.stages.first == index(stage); });
  }

 private:
  int index(const Stage& stage) const { return static_cast<int>(&stage - schedule_.stages().data()); }
  const char* name(const MappedMemory& mapped) const { return model_.tensor(mapped.tensor).name.c_str(); }

  const Schedule& schedule_;
  std::vector<void*> pointers_;  // of views_.mapped(), in this pass
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(Sharing sharing, const Model& model, const Schedule& schedule,
                                        TensorViews& views) {
  switch (sharing) {
    case Sharing::copy:
      return std::make_unique<CopyExchange>(model, views);
    case Sharing::map:
      return std::make_unique<MapExchange>(model, schedule, views);
    default:
      return std::make_unique<SvmExchange>(views);
  }
}

}  // namespace phonebit::engine::coexec
