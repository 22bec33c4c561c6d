// Where each tensor lives while an image runs: in the arena, or in a buffer of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loader/model.h"
#include "memory/aligned_buffer.h"
#include "memory/arena_plan.h"

namespace phonebit::cpu {

/// Keeps the sum of all memory that a model makes the engine allocate below a limit, so that a small damaged
/// or hostile file cannot exhaust the machine.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t limit_bytes) : limit_(limit_bytes) {}
  /// Throws Error(format) when the sum so far plus `bytes` exceeds the limit.
  void take(uint64_t bytes, const char* what);

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
};

/// Kinds of memory that a tensor may live in.
enum class Place { arena, input, output };

/// Assigns every tensor a place: network inputs are read where the caller has them, network outputs are
/// written where the caller wants them, RESHAPE shares its operand's memory, a residual sum that of its dying
/// shortcut, and all else is planned into one arena.
class Storage {
 public:
  Storage(const loader::Model& model, MemoryBudget& budget);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Points the pointer variable at `slot` to the tensor's memory: at once when it lies in the arena, else
  /// whenever bind_caller() is called. `slot` must stay where it is. A template, since void** cannot stand
  /// for T**.
  template <class T>
  void bind(int tensor, T** slot) {
    bind_slot(tensor, slot);
  }

  /// Redirects all slots that refer to the caller's buffers to these (one a network input and output, one
  /// image).
  void bind_caller(const std::byte* const* inputs, std::byte* const* outputs);

  /// The tensor's memory: valid after bind_caller(), until the tensor dies.
  std::byte* address(int tensor) const;
  /// True when both tensors share memory.
  bool is_shared(int a, int b) const { return root(a) == root(b); }

  size_t arena_bytes() const { return plan_.bytes; }
  size_t lower_bound_bytes() const { return plan_.lower_bound_bytes; }

 private:
  /// Tensors that share memory have one root, the first of them.
  struct Home {
    int root;
    Place place = Place::arena;
    int index = 0;  // of the network input or output, or of the buffer in the arena plan
  };
  struct Slot {
    void* pointer_variable;
    int tensor;
  };

  int root(int tensor) const { return homes_[static_cast<size_t>(tensor)].root; }
  size_t index_of_root(int tensor) const { return static_cast<size_t>(root(tensor)); }
  Home& home(int tensor) { return homes_[static_cast<size_t>(root(tensor))]; }
  const Home& home(int tensor) const { return homes_[static_cast<size_t>(root(tensor))]; }
  void assign_places(const loader::Model& model);
  void share_reshaped(const loader::Op& op);
  void share_residual_sums(const loader::Model& model);
  void plan_lifetimes(const loader::Model& model, MemoryBudget& budget);
  void bind_slot(int tensor, void* pointer_variable);

  std::vector<Home> homes_;
  memory::ArenaPlan plan_;
  memory::AlignedBuffer arena_;
  std::vector<Slot> caller_slots_;
  std::vector<std::byte*> caller_inputs_;
  std::vector<std::byte*> caller_outputs_;
};

}  // namespace phonebit::cpu
