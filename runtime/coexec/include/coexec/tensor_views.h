// Memory of tensors as two processors see it.
#pragma once

#include <memory>
#include <vector>

#include "analysis/memory_budget.h"
#include "coexec/opencl_names.h"
#include "coexec/schedule.h"
#include "cpu/tensor_slots.h"
#include "memory/aligned_buffer.h"
#include "opencl/layer_set.h"
#include "opencl/svm.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// Each processor has a view of a tensor it touches, of the whole tensor's geometry. Both are the same memory
/// where that is safe; else what one writes is copied to the other's view. Nothing is shared between tensors
/// (except by RESHAPE): the processors run apart from each other, so no tensor's life ends at a known time.
class TensorViews final : public cpu::TensorSlots, public opencl::TensorMemory {
 public:
  TensorViews(const loader::Model& model, const Schedule& schedule, opencl::Context& context, Sharing sharing,
              analysis::MemoryBudget& budget);

  /// Whether both processors' views are one memory.
  bool is_one(int tensor) const { return view(tensor).is_one; }
  /// The CPU's view; null where it has none. Sharing::map: valid while mapped.
  std::byte* cpu_address(int tensor) const { return view(tensor).address; }
  /// The memory object that is mapped for the CPU; null where there is nothing to map.
  cl_mem mapped(int tensor) const;
  /// Tells where the tensor has been mapped; pointers into it follow.
  void set_address(int tensor, std::byte* address);

  bool is_shared(int a, int b) const override { return root(a) == root(b); }
  opencl::DeviceMemory memory(int tensor) const override;
  bool is_half(int) const override { return false; }

  /// Bytes of all views.
  size_t bytes() const { return bytes_; }

 private:
  struct View {
    bool is_one = false;
    std::byte* address = nullptr;
    memory::AlignedBuffer host;              // the CPU's own
    Handle<cl_mem> host_accessible;          // the CPU's, mapped: Sharing::map
    Handle<cl_mem> device;                   // the GPU's
    std::unique_ptr<opencl::SvmMemory> svm;  // the GPU's, or both: Sharing::svm
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
  void allocate(int tensor, bool for_cpu, bool for_gpu, size_t bytes, opencl::Context& context,
                Sharing sharing);

  std::vector<int> roots_;
  std::vector<View> views_;
  std::vector<Slot> slots_;
  size_t bytes_ = 0;
};

/// The CPU's part of a layer in a view of its own may begin earlier, at a whole word of packed bits: what it
/// computes too much is never handed over. Where the view is the GPU's, too, parts begin at words.
OutputPart from_whole_words(const OutputPart& part);

}  // namespace phonebit::engine::coexec
