#include "cpu/storage.h"

#include <algorithm>
#include <cstring>

#include "types/fail.h"

namespace phonebit::engine::cpu {

using analysis::Place;
using analysis::TensorHome;

Storage::Storage(const loader::Model& model, analysis::MemoryBudget& budget)
    : homes_(model),
      plan_(memory::plan_arena(homes_.lifetimes())),
      caller_inputs_(model.inputs.size(), nullptr),
      caller_outputs_(model.outputs.size(), nullptr) {
  int conflict[2];
  if (!memory::verify_arena(homes_.lifetimes(), plan_, conflict))
    fail(ErrorCode::internal, "arena plan: buffers %d and %d overlap; please report this model", conflict[0],
         conflict[1]);
  budget.take(plan_.bytes, "activations");
  arena_ = memory::AlignedBuffer(plan_.bytes, "activations");
}

std::byte* Storage::address(int tensor) const {
  const TensorHome& place = homes_.home(tensor);
  const auto index = static_cast<size_t>(place.index);
  switch (place.place) {
    case Place::input:
      return caller_inputs_[index];
    case Place::output:
      return caller_outputs_[index];
    case Place::arena:
      break;
  }
  return arena_.data() + plan_.offsets[index];
}

void Storage::bind_slot(int tensor, size_t offset, void* pointer_variable) {
  const Slot slot = {tensor, offset, pointer_variable};
  if (homes_.home(tensor).place == Place::arena)
    set_slot(slot);
  else
    caller_slots_.push_back(slot);
}

void Storage::set_slot(const Slot& slot) const {
  std::byte* const target = address(slot.tensor) + slot.offset;
  std::memcpy(slot.pointer_variable, &target, sizeof target);
}

void Storage::bind_caller(const std::byte* const* inputs, std::byte* const* outputs) {
  // Kernels read inputs through pointers to const; only this table has forgotten that.
  for (size_t i = 0; i < caller_inputs_.size(); ++i) caller_inputs_[i] = const_cast<std::byte*>(inputs[i]);
  std::copy_n(outputs, caller_outputs_.size(), caller_outputs_.begin());
  for (const Slot& slot : caller_slots_) set_slot(slot);
}

}  // namespace phonebit::engine::cpu
