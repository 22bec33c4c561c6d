// Memory of tensors as two processors see it.
#pragma once

#include <memory>
#include <vector>

#include "analysis/memory_budget.h"
#include "coexec/opencl_names.h"
#include "coexec/schedule.h"
#include "coexec/touches.h"
#include "cpu/tensor_slots.h"
#include "memory/aligned_buffer.h"
#include "opencl/layer_set.h"
#include "opencl/svm.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// Whether views of different tensors may be one memory.
enum class Reuse {
  over_time,  ///< where one is not used any more when the other is used for the first time
  none,       ///< every tensor can be read when a pass has ended
};

/// Each processor has a view of a tensor it touches, of the whole tensor's geometry. Both are the same memory
/// where that is safe; else what one writes is copied to the other's view.
class TensorViews final : public cpu::TensorSlots, public opencl::TensorMemory {
 public:
  TensorViews(const loader::Model& model, const Schedule& schedule, opencl::Context& context, Sharing sharing,
              Reuse reuse, analysis::MemoryBudget& budget);

  /// Whether both processors' views are one memory.
  bool is_one(int tensor) const {
    return view(tensor).cpu != nullptr && view(tensor).cpu == view(tensor).gpu;
  }
  /// The CPU's view; null where it has none. Sharing::map: valid while mapped.
  std::byte* cpu_address(int tensor) const { return view(tensor).address; }
  /// The memory object that is mapped for the CPU; null where there is nothing to map.
  cl_mem mapped(int tensor) const;
  /// Tells where the tensor has been mapped; pointers into it follow.
  void set_address(int tensor, std::byte* address);

  bool is_shared(int a, int b) const override { return root(a) == root(b); }
  opencl::DeviceMemory memory(int tensor) const override;
  bool is_half(int) const override { return false; }

  /// Bytes of all memories.
  size_t bytes() const { return bytes_; }

 private:
  enum class Kind { host, host_accessible, device, svm };
  /// A piece of memory, for one view or several.
  struct Memory {
    Kind kind = Kind::host;
    size_t bytes = 0;
    memory::AlignedBuffer host;
    Handle<cl_mem> buffer;                   // all other kinds
    std::unique_ptr<opencl::SvmMemory> svm;  // under the buffer
  };
  /// Of a tensor; `cpu` and `gpu` are the same where both views are.
  struct View {
    const Memory* cpu = nullptr;
    const Memory* gpu = nullptr;
    std::byte* address = nullptr;
  };
  /// A view's wish for memory.
  struct Wish {
    Kind kind;
    size_t bytes;
    Touches touches;
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
  std::vector<Wish> wishes_of(const std::vector<bool>& is_one, const loader::Model& model,
                              const Schedule& schedule, Sharing sharing);
  void allocate(const std::vector<Wish>& wishes, const Schedule& schedule, opencl::Context& context,
                Reuse reuse, analysis::MemoryBudget& budget);
  static void make(Memory& memory, Kind kind, size_t bytes, opencl::Context& context);

  std::vector<int> roots_;
  std::vector<View> views_;
  std::vector<Memory> memories_;
  std::vector<Slot> slots_;
  size_t bytes_ = 0;
};

/// The CPU's part of a layer in a view of its own may begin earlier, at a whole word of packed bits: what it
/// computes too much is never handed over. Where the view is the GPU's, too, parts begin at words.
OutputPart from_whole_words(const OutputPart& part);

}  // namespace phonebit::engine::coexec
