// How layers get at the memory of tensors: pointers that the owner of the memory keeps up to date.
#pragma once

#include <cstddef>

namespace phonebit::engine::cpu {

class TensorSlots {
 public:
  virtual ~TensorSlots() = default;

  /// Points the pointer variable at `slot` to `offset` bytes after the tensor's begin, now or whenever the
  /// tensor gets its memory. `slot` must stay where it is. A template, since void** cannot stand for T**.
  template <class T>
  void bind(int tensor, T** slot, size_t offset = 0) {
    bind_slot(tensor, offset, slot);
  }

  /// True when both tensors share memory.
  virtual bool is_shared(int a, int b) const = 0;

 private:
  virtual void bind_slot(int tensor, size_t offset, void* pointer_variable) = 0;
};

}  // namespace phonebit::engine::cpu
