#include "coexec/exchange.h"

#include "analysis/op_tensors.h"
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

enum class Way { to_host, from_host, on_device };
constexpr const char* kCommands[] = {"clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clEnqueueCopyBuffer"};

/// Enqueues a copy of a region between two memories of one tensor: of `from` and `to`, `host` stands for the
/// one that is not on the device. Whole rows are one run, whose pitch is its length: then an origin in rows
/// need not be a whole number of pitches.
void enqueue_copy(Way way, cl_command_queue queue, const Region& region, cl_mem from, cl_mem to,
                  std::byte* host, const char* name) {
  const bool is_one_run = region.runs == 1;
  const size_t offset = region.offset, bytes = region.run_bytes;
  const Rect rect(region);
  const size_t* const at = rect.origin;
  cl_int status = 0;
  switch (way) {
    case Way::to_host:
      status = is_one_run ? api().clEnqueueReadBuffer(queue, from, 0, offset, bytes, host + offset, 0,
                                                      nullptr, nullptr)
                          : api().clEnqueueReadBufferRect(queue, from, 0, at, at, rect.region, rect.pitch, 0,
                                                          rect.pitch, 0, host, 0, nullptr, nullptr);
      break;
    case Way::from_host:
      status = is_one_run ? api().clEnqueueWriteBuffer(queue, to, 0, offset, bytes, host + offset, 0, nullptr,
                                                       nullptr)
                          : api().clEnqueueWriteBufferRect(queue, to, 0, at, at, rect.region, rect.pitch, 0,
                                                           rect.pitch, 0, host, 0, nullptr, nullptr);
      break;
    case Way::on_device:
      status = is_one_run
                   ? api().clEnqueueCopyBuffer(queue, from, to, offset, offset, bytes, 0, nullptr, nullptr)
                   : api().clEnqueueCopyBufferRect(queue, from, to, at, at, rect.region, rect.pitch, 0,
                                                   rect.pitch, 0, 0, nullptr, nullptr);
      break;
  }
  check(status, kCommands[static_cast<int>(way)], name);
}

class CopyExchange final : public Exchange {
 public:
  CopyExchange(const Model& model, TensorViews& views) : model_(model), views_(views) {}

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_cpu) copy(Way::to_host, handover, queue);
  }
  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_gpu) copy(Way::from_host, handover, queue);
  }
  bool has_commands_for_cpu(const Stage& stage) const override { return !stage.to_cpu.empty(); }

 private:
  void copy(Way way, const Handover& handover, cl_command_queue queue) {
    const cl_mem gpu = views_.memory(handover.tensor).buffer;
    enqueue_copy(way, queue, views_.region(handover.tensor, handover.part), gpu, gpu,
                 views_.stored_address(handover.tensor), model_.tensor(handover.tensor).name.c_str());
  }

  const Model& model_;
  TensorViews& views_;
};

/// Coherent memory: only tensors with two views are copied, by the CPU, which reaches both.
class SvmExchange final : public Exchange {
 public:
  explicit SvmExchange(TensorViews& views) : views_(views) {}

  void enqueue_for_cpu(const Stage&, cl_command_queue) override {}
  void enqueue_from_cpu(const Stage&, cl_command_queue) override {}

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
/// with two views are copied by the device, since the CPU's view is the driver's memory, too.
class MapExchange final : public Exchange {
 public:
  MapExchange(const Model& model, const Schedule& schedule, TensorViews& views)
      : model_(model), schedule_(schedule), views_(views), mappings_(schedule.stages().size()) {
    for (const Stage& stage : schedule.stages()) plan(stage);
  }

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_cpu) copy_between(handover, queue, false);
    for (Mapping& mapping : mappings_[index(stage)]) map(mapping, queue);
  }

  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Mapping& mapping : mappings_[index(stage)])
      check(api().clEnqueueUnmapMemObject(queue, views_.mapped(mapping.tensor), mapping.pointer, 0, nullptr,
                                          nullptr),
            "clEnqueueUnmapMemObject", model_.tensor(mapping.tensor).name.c_str());
    for (const Handover& handover : stage.to_gpu) copy_between(handover, queue, true);
  }

  void begin_cpu(const Stage& stage) override {
    for (const Mapping& mapping : mappings_[index(stage)])
      views_.set_address(mapping.tensor, static_cast<std::byte*>(mapping.pointer) - mapping.region.offset);
  }

  bool has_commands_for_cpu(const Stage& stage) const override { return !mappings_[index(stage)].empty(); }

 private:
  struct Mapping {
    int tensor;
    Region region;
    cl_bitfield flags;
    void* pointer = nullptr;
  };

  size_t index(const Stage& stage) const { return static_cast<size_t>(&stage - schedule_.stages().data()); }

  /// What the CPU reads and writes in a stage, as far as it has to be mapped.
  void plan(const Stage& stage) {
    std::vector<cl_bitfield> access(model_.tensors.size());
    const auto add = [&](const std::vector<int>& tensors, cl_bitfield flag) {
      for (const int tensor : tensors) access[static_cast<size_t>(tensor)] |= flag;
    };
    if (&stage == &schedule_.stages().front()) add(schedule_.inputs(), CL_MAP_WRITE);
    if (&stage == &schedule_.stages().back()) add(schedule_.outputs(), CL_MAP_READ);
    for (const PlacedPart& placed : stage.cpu) {
      add(analysis::tensors_read(model_.ops[placed.op]), CL_MAP_READ);
      add(analysis::tensors_written(model_.ops[placed.op]), CL_MAP_WRITE);
    }
    for (size_t i = 0; i < access.size(); ++i) {
      const auto tensor = static_cast<int>(i);
      if (access[i] == 0 || views_.mapped(tensor) == nullptr) continue;
      mappings_[index(stage)].push_back({tensor, mapped_region(tensor, access[i]), access[i], nullptr});
    }
  }

  /// In the stage that writes it, the GPU may be writing the other part of the same memory.
  Region mapped_region(int tensor, cl_bitfield flags) const {
    const TensorUse& use = schedule_.use(tensor);
    const bool is_written_by_both = use.written_by_cpu && use.written_by_gpu && views_.is_one(tensor);
    if (is_written_by_both && (flags & CL_MAP_WRITE) != 0) return views_.region(tensor, *use.written_by_cpu);
    return views_.whole_region(tensor);
  }

  void map(Mapping& mapping, cl_command_queue queue) {
    cl_int status = 0;
    mapping.pointer = api().clEnqueueMapBuffer(queue, views_.mapped(mapping.tensor), 0, mapping.flags,
                                               mapping.region.offset, mapping.region.run_bytes, 0, nullptr,
                                               nullptr, &status);
    check(status, "clEnqueueMapBuffer", model_.tensor(mapping.tensor).name.c_str());
  }

  void copy_between(const Handover& handover, cl_command_queue queue, bool to_gpu) {
    if (views_.is_one(handover.tensor)) return;
    const cl_mem cpu = views_.mapped(handover.tensor), gpu = views_.memory(handover.tensor).buffer;
    enqueue_copy(Way::on_device, queue, views_.region(handover.tensor, handover.part), to_gpu ? cpu : gpu,
                 to_gpu ? gpu : cpu, nullptr, model_.tensor(handover.tensor).name.c_str());
  }

  const Model& model_;
  const Schedule& schedule_;
  TensorViews& views_;
  std::vector<std::vector<Mapping>> mappings_;  // by stage
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
