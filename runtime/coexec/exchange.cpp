#include "coexec/exchange.h"

#include <map>
#include <set>

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

/// Whole rows are one run, whose pitch is its length: then an origin in rows need not be a whole number of
/// pitches.
bool is_one_run(const Region& region) { return region.runs == 1; }

class CopyExchange final : public Exchange {
 public:
  CopyExchange(const Model& model, TensorViews& views) : model_(model), views_(views) {}

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_cpu) {
      const loader::Tensor& tensor = model_.tensor(handover.tensor);
      const Region region = region_of(tensor, handover.part);
      const cl_mem from = views_.memory(handover.tensor).buffer;
      std::byte* const to = views_.cpu_address(handover.tensor);
      if (is_one_run(region)) {
        check(api().clEnqueueReadBuffer(queue, from, 0, region.offset, region.run_bytes, to + region.offset,
                                        0, nullptr, nullptr),
              "clEnqueueReadBuffer", tensor.name.c_str());
        continue;
      }
      const Rect rect(region);
      check(api().clEnqueueReadBufferRect(queue, from, 0, rect.origin, rect.origin, rect.region, rect.pitch,
                                          0, rect.pitch, 0, to, 0, nullptr, nullptr),
            "clEnqueueReadBufferRect", tensor.name.c_str());
    }
  }

  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_gpu) {
      const loader::Tensor& tensor = model_.tensor(handover.tensor);
      const Region region = region_of(tensor, handover.part);
      const cl_mem to = views_.memory(handover.tensor).buffer;
      const std::byte* const from = views_.cpu_address(handover.tensor);
      if (is_one_run(region)) {
        check(api().clEnqueueWriteBuffer(queue, to, 0, region.offset, region.run_bytes, from + region.offset,
                                         0, nullptr, nullptr),
              "clEnqueueWriteBuffer", tensor.name.c_str());
        continue;
      }
      const Rect rect(region);
      check(api().clEnqueueWriteBufferRect(queue, to, 0, rect.origin, rect.origin, rect.region, rect.pitch, 0,
                                           rect.pitch, 0, from, 0, nullptr, nullptr),
            "clEnqueueWriteBufferRect", tensor.name.c_str());
    }
  }

  bool has_commands_for_cpu(const Stage& stage) const override { return !stage.to_cpu.empty(); }

 private:
  const Model& model_;
  TensorViews& views_;
};

/// Coherent memory: only tensors with two views are copied, by the CPU, which reaches both.
class SvmExchange final : public Exchange {
 public:
  SvmExchange(const Model& model, TensorViews& views) : model_(model), views_(views) {}

  void enqueue_for_cpu(const Stage&, cl_command_queue) override {}
  void enqueue_from_cpu(const Stage&, cl_command_queue) override {}

  void begin_cpu(const Stage& stage) override {
    for (const Handover& handover : stage.to_cpu) {
      if (views_.is_one(handover.tensor)) continue;
      copy_region(region_of(model_.tensor(handover.tensor), handover.part), gpu_address(handover.tensor),
                  views_.cpu_address(handover.tensor));
    }
  }
  void end_cpu(const Stage& stage) override {
    for (const Handover& handover : stage.to_gpu) {
      if (views_.is_one(handover.tensor)) continue;
      copy_region(region_of(model_.tensor(handover.tensor), handover.part),
                  views_.cpu_address(handover.tensor), gpu_address(handover.tensor));
    }
  }

 private:
  std::byte* gpu_address(int tensor) const { return static_cast<std::byte*>(views_.memory(tensor).svm); }

  const Model& model_;
  TensorViews& views_;
};

/// Memory of the driver that both reach, in turns: mapped while the CPU works with it (µLayer, CoDL). Tensors
/// with two views are copied by the device, since the CPU's view is the driver's memory, too.
class MapExchange final : public Exchange {
 public:
  MapExchange(const Model& model, const Schedule& schedule, TensorViews& views)
      : model_(model), views_(views) {
    for (const Stage& stage : schedule.stages()) plan(stage, schedule);
  }

  void enqueue_for_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Handover& handover : stage.to_cpu) copy_between(handover, queue, false);
    for (Mapping& mapping : mappings_[&stage]) map(mapping, queue);
  }

  void enqueue_from_cpu(const Stage& stage, cl_command_queue queue) override {
    for (const Mapping& mapping : mappings_[&stage])
      check(api().clEnqueueUnmapMemObject(queue, views_.mapped(mapping.tensor), mapping.pointer, 0, nullptr,
                                          nullptr),
            "clEnqueueUnmapMemObject", model_.tensor(mapping.tensor).name.c_str());
    for (const Handover& handover : stage.to_gpu) copy_between(handover, queue, true);
  }

  void begin_cpu(const Stage& stage) override {
    for (const Mapping& mapping : mappings_[&stage])
      views_.set_address(mapping.tensor, static_cast<std::byte*>(mapping.pointer) - mapping.region.offset);
  }

  bool has_commands_for_cpu(const Stage& stage) const override {
    const auto found = mappings_.find(&stage);
    return found != mappings_.end() && !found->second.empty();
  }

 private:
  struct Mapping {
    int tensor;
    Region region;
    cl_bitfield flags;
    void* pointer = nullptr;
  };

  /// What the CPU reads and writes in a stage, as far as it has to be mapped.
  void plan(const Stage& stage, const Schedule& schedule) {
    std::map<int, cl_bitfield> access;
    const bool is_first = &stage == &schedule.stages().front(), is_last = &stage == &schedule.stages().back();
    if (is_first)
      for (const int tensor : schedule.inputs()) access[tensor] |= CL_MAP_WRITE;
    if (is_last)
      for (const int tensor : schedule.outputs()) access[tensor] |= CL_MAP_READ;
    for (const PlacedPart& placed : stage.cpu) {
      for (const int tensor : analysis::tensors_read(model_.ops[placed.op])) access[tensor] |= CL_MAP_READ;
      for (const int tensor : analysis::tensors_written(model_.ops[placed.op]))
        access[tensor] |= CL_MAP_WRITE;
    }
    for (const auto& [tensor, flags] : access) {
      if (views_.mapped(tensor) == nullptr) continue;
      mappings_[&stage].push_back({tensor, mapped_region(tensor, flags, schedule), flags, nullptr});
    }
  }

  /// In the stage that writes it, the GPU may be writing the other part of the same memory.
  Region mapped_region(int tensor, cl_bitfield flags, const Schedule& schedule) const {
    const loader::Tensor& of_tensor = model_.tensor(tensor);
    const TensorUse& use = schedule.use(tensor);
    const bool is_written_by_both = use.written_by_cpu && use.written_by_gpu && views_.is_one(tensor);
    if (is_written_by_both && (flags & CL_MAP_WRITE) != 0) return region_of(of_tensor, *use.written_by_cpu);
    return {0, of_tensor.bytes(), 1, of_tensor.bytes()};
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
    const loader::Tensor& tensor = model_.tensor(handover.tensor);
    const Region region = region_of(tensor, handover.part);
    const cl_mem cpu = views_.mapped(handover.tensor), gpu = views_.memory(handover.tensor).buffer;
    const cl_mem from = to_gpu ? cpu : gpu, to = to_gpu ? gpu : cpu;
    if (is_one_run(region)) {
      check(api().clEnqueueCopyBuffer(queue, from, to, region.offset, region.offset, region.run_bytes, 0,
                                      nullptr, nullptr),
            "clEnqueueCopyBuffer", tensor.name.c_str());
      return;
    }
    const Rect rect(region);
    check(api().clEnqueueCopyBufferRect(queue, from, to, rect.origin, rect.origin, rect.region, rect.pitch, 0,
                                        rect.pitch, 0, 0, nullptr, nullptr),
          "clEnqueueCopyBufferRect", tensor.name.c_str());
  }

  const Model& model_;
  TensorViews& views_;
  std::map<const Stage*, std::vector<Mapping>> mappings_;
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
      return std::make_unique<SvmExchange>(model, views);
  }
}

}  // namespace phonebit::engine::coexec
