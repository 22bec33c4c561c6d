// Memory of tensors as two processors see it.
#pragma once

#include <memory>
#include <vector>

#include "analysis/memory_budget.h"
#include "coexec/lifetimes.h"
#include "coexec/schedule.h"
#include "cpu/tensor_slots.h"
#include "gpu/layer_set.h"
#include "memory/aligned_buffer.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// The bytes of a tensor that a part of it takes. Channels of packed bits begin and end at multiples of 8, or at
/// the last channel: then the last word's unused bits belong to the part.
gpu::Region byte_range_of(const loader::Tensor& tensor, const OutputPart& part);
/// From one memory of the tensor to another.
void copy_bytes(const gpu::Region& range, const std::byte* from, std::byte* to);

/// Whether views of different tensors may be one memory.
enum class Reuse {
  over_time,  ///< where one is not used any more when the other is used for the first time
  none,       ///< every tensor can be read when an inference has ended
};

/// Memory that the CPU has in these stages, and the GPU's queue before and after them.
struct MappedMemory {
  int tensor;
  const gpu::DeviceMemory* memory;
  size_t bytes;
  StageSpan stages;
  /// Whether the CPU writes all of it before it reads any; else it only reads.
  bool is_written;
};

/// Each processor has a view of a tensor it uses, of the whole tensor's geometry. Both are the same memory
/// where that is safe; else what one writes is copied to the other's view.
///
/// Sharing::mapped: the GPU may not use a buffer of which any part is mapped for writing, nor write one that is
/// mapped at all. So only tensors that one processor writes are one memory, and are mapped once
/// per inference: from when the GPU has written them, or until it reads them, where the GPU waits for the CPU anyway.
///
/// Below exact precision float tensors that the GPU alone uses are stored as halves, but for the network's inputs and
/// outputs. What the CPU uses, too, is stored as the floats that it computes with: halves would be more memory, not
/// less, and a conversion of each transfer.
class TensorViews final : public cpu::TensorSlots, public gpu::TensorMemory {
 public:
  TensorViews(const loader::Model& model, const Schedule& schedule, gpu::Device& device, Precision precision,
              Sharing sharing, Reuse reuse, analysis::MemoryBudget& budget);

  /// Whether both processors' views are one memory.
  bool is_one(int tensor) const {
    return view(tensor).cpu != nullptr && view(tensor).cpu == view(tensor).gpu;
  }
  /// What the CPU computes with; null where it has no view. Sharing::mapped: valid while mapped.
  std::byte* cpu_address(int tensor) const { return view(tensor).address; }
  /// Of a part in either view of a tensor that the CPU uses.
  gpu::Region range(int tensor, const OutputPart& part) const;
  /// Of a whole view.
  size_t bytes_of(int tensor) const;
  /// What is mapped for the CPU in an inference; each memory of several tensors at different times.
  const std::vector<MappedMemory>& mapped() const { return mapped_; }
  /// The memory that is mapped for the CPU; null where there is nothing to map.
  const gpu::DeviceMemory* mapped(int tensor) const;
  /// Where the tensor has been mapped; pointers into it follow.
  void set_address(int tensor, std::byte* address);

  bool is_shared(int a, int b) const override { return root(a) == root(b); }
  const gpu::DeviceMemory& memory(int tensor) const override { return *view(tensor).gpu->buffer; }
  bool is_half(int tensor) const override { return is_half_[static_cast<size_t>(root(tensor))]; }

  /// Bytes of all memories.
  size_t bytes() const { return bytes_; }

 private:
  enum class Kind { host, mapped, device, shared };
  /// A piece of memory, for one view or several.
  struct Memory {
    Kind kind = Kind::host;
    size_t bytes = 0;
    memory::AlignedBuffer host;
    std::unique_ptr<gpu::DeviceMemory> buffer;  // all other kinds
  };
  /// Of a tensor; `cpu` and `gpu` are the same where both views are.
  struct View {
    const Memory* cpu = nullptr;
    const Memory* gpu = nullptr;
    std::byte* address = nullptr;
  };
  /// The memory that a view needs.
  struct Request {
    Kind kind;
    size_t bytes;
    Lifetime lifetime;
    size_t tensor;
    bool for_cpu, for_gpu;
  };
  struct Slot {
    int tensor;
    size_t offset;
    void* pointer_variable;
  };

  void bind_slot(int tensor, size_t offset, void* pointer_variable) override;
  int root(int tensor) const { return roots_[static_cast<size_t>(tensor)]; }
  const View& view(int tensor) const { return views_[static_cast<size_t>(root(tensor))]; }
  View& mutable_view(int tensor) { return views_[static_cast<size_t>(root(tensor))]; }
  /// By root: whether both views may be one memory.
  std::vector<bool> find_ones(const Schedule& schedule, Sharing sharing) const;
  std::vector<Request> requests_of(const std::vector<bool>& is_one, const Schedule& schedule,
                                   Sharing sharing);
  void allocate(const std::vector<Request>& requests, const Schedule& schedule, gpu::Device& device,
                Reuse reuse, analysis::MemoryBudget& budget);
  void add_mapping(const Request& request, const Schedule& schedule);
  static void make(Memory& memory, Kind kind, size_t bytes, gpu::Device& device);

  const loader::Model& model_;
  std::vector<int> roots_;
  std::vector<bool> is_half_;  // by root
  std::vector<View> views_;
  std::vector<Memory> memories_;
  std::vector<Slot> slots_;
  std::vector<MappedMemory> mapped_;
  size_t bytes_ = 0;
};

}  // namespace phonebit::engine::coexec
