// Where each tensor lives while an image runs: in the arena, or in a buffer of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/memory_budget.h"
#include "analysis/tensor_homes.h"
#include "cpu/tensor_slots.h"
#include "memory/aligned_buffer.h"

namespace phonebit::engine::cpu {

/// Gives every tensor its memory: network inputs are read where the caller has them, network outputs are
/// written where the caller wants them, all else lies in one arena (analysis/tensor_homes.h).
class Storage final : public TensorSlots {
 public:
  Storage(const loader::Model& model, analysis::MemoryBudget& budget);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Redirects all slots that refer to the caller's buffers to these (one per network input and output, one
  /// image).
  void bind_caller(const std::byte* const* inputs, std::byte* const* outputs);

  /// The tensor's memory: valid after bind_caller(), until the tensor dies.
  std::byte* address(int tensor) const;
  bool is_shared(int a, int b) const override { return homes_.is_shared(a, b); }

  const analysis::TensorHomes& homes() const { return homes_; }
  size_t arena_bytes() const { return plan_.bytes; }
  size_t lower_bound_bytes() const { return plan_.lower_bound_bytes; }

 private:
  struct Slot {
    int tensor;
    size_t offset;
    void* pointer_variable;
  };

  /// At once when the tensor lies in the arena, else whenever bind_caller() is called.
  void bind_slot(int tensor, size_t offset, void* pointer_variable) override;
  void set_slot(const Slot& slot) const;

  analysis::TensorHomes homes_;
  memory::ArenaPlan plan_;
  memory::AlignedBuffer arena_;
  std::vector<Slot> caller_slots_;
  std::vector<std::byte*> caller_inputs_;
  std::vector<std::byte*> caller_outputs_;
};

}  // namespace phonebit::engine::cpu
