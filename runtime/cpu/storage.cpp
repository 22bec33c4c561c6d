#include "cpu/storage.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "fail.h"

namespace phonebit::cpu {

using format::OpKind;
using format::StepKind;
using loader::Model;
using loader::Op;

namespace {

/// Every tensor that an op reads: its operands, then those of its steps.
template <class Visit>
void for_each_operand(const Op& op, const Visit& visit) {
  for (const int operand : op.operands) visit(operand);
  for (size_t s = 0; s < op.steps.size(); ++s) {
    if (op.step_kind(s) == StepKind::kAdd || op.step_kind(s) == StepKind::kMultiply)
      visit(op.steps[s].tensor);
  }
}

}  // namespace

void MemoryBudget::take(uint64_t bytes, const char* what) {
  if (bytes > limit_ || used_ > limit_ - bytes)
    fail(ErrorCode::format,
         "needs %" PRIu64 " MB for %s beside %" PRIu64 " MB for the rest, more than the limit of %" PRIu64
         " MB; raise Options::max_memory_bytes if the model is trusted",
         bytes >> 20, what, used_ >> 20, limit_ >> 20);
  used_ += bytes;
}

Storage::Storage(const Model& model, MemoryBudget& budget)
    : caller_inputs_(model.inputs.size(), nullptr), caller_outputs_(model.outputs.size(), nullptr) {
  assign_places(model);
  plan_lifetimes(model, budget);
}

void Storage::assign_places(const Model& model) {
  homes_.resize(model.tensors.size());
  for (size_t i = 0; i < homes_.size(); ++i) homes_[i].root = static_cast<int>(i);
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    home(model.outputs[i]).place = Place::output;
    home(model.outputs[i]).index = static_cast<int>(i);
  }
  // Second, since a tensor that is input and output is read in place, and copied at the end.
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    home(model.inputs[i]).place = Place::input;
    home(model.inputs[i]).index = static_cast<int>(i);
  }
  for (const Op& op : model.ops) {
    if (op.kind == OpKind::kReshape) share_reshaped(op);
  }
  share_residual_sums(model);
}

/// Tensors are written once, so two of equal content may share memory for good, unless both sides are tied to
/// different buffers of the caller.
void Storage::share_reshaped(const Op& op) {
  const int from = op.operands[0];
  const int to = op.record.value_output;
  if (home(to).place == Place::output) {
    if (home(from).place != Place::arena) return;
    const Home target = home(to);
    home(from).place = target.place;
    home(from).index = target.index;
  }
  homes_[static_cast<size_t>(to)].root = root(from);
}

/// A residual sum takes the place of the shortcut that dies with it, so that one map is in the cache instead
/// of two: binary convolutions finish each pixel once, and read an element of the shortcut before they write
/// it.
void Storage::share_residual_sums(const Model& model) {
  std::vector<int> last_reader(homes_.size(), -1);  // of a root
  for (size_t i = 0; i < model.ops.size(); ++i)
    for_each_operand(model.ops[i],
                     [&](int tensor) { last_reader[index_of_root(tensor)] = static_cast<int>(i); });
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    const int sum = op.record.value_output;
    if (op.kind != OpKind::kBinaryConv2d || sum < 0 || home(sum).place != Place::arena) continue;
    for (size_t s = 0; s < op.steps.size(); ++s) {
      if (op.step_kind(s) != StepKind::kAdd) continue;
      const int shortcut = op.steps[s].tensor;
      const bool dies_here = last_reader[index_of_root(shortcut)] == static_cast<int>(i);
      const bool same_size = model.tensor(shortcut).bytes() == model.tensor(sum).bytes();
      if (home(shortcut).place != Place::arena || !dies_here || !same_size) continue;
      last_reader[index_of_root(shortcut)] = last_reader[index_of_root(sum)];
      for (Home& other : homes_) {
        if (other.root == sum) other.root = root(shortcut);
      }
      break;
    }
  }
}

void Storage::plan_lifetimes(const Model& model, MemoryBudget& budget) {
  std::vector<memory::Lifetime> lifetimes;
  std::vector<int> buffer_of_root(homes_.size(), -1);
  const auto touch = [&](int tensor, int step) {
    Home& place = home(tensor);
    if (place.place != Place::arena) return;
    int& buffer = buffer_of_root[static_cast<size_t>(root(tensor))];
    if (buffer < 0) {
      buffer = static_cast<int>(lifetimes.size());
      place.index = buffer;
      lifetimes.push_back({model.tensor(tensor).bytes(), step, step});
    }
    lifetimes[static_cast<size_t>(buffer)].last = step;
  };
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    const int step = static_cast<int>(i);
    for_each_operand(op, [&](int tensor) { touch(tensor, step); });
    for (const int output : {op.record.value_output, op.record.bits_output}) {
      if (output >= 0) touch(output, step);
    }
  }
  plan_ = memory::plan_arena(lifetimes);
  int conflict[2];
  if (!memory::verify_arena(lifetimes, plan_, conflict))
    fail(ErrorCode::internal, "arena plan: buffers %d and %d overlap; please report this model", conflict[0],
         conflict[1]);
  budget.take(plan_.bytes, "activations");
  arena_ = memory::AlignedBuffer(plan_.bytes, "activations");
}

std::byte* Storage::address(int tensor) const {
  const Home& place = home(tensor);
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

void Storage::bind_slot(int tensor, void* pointer_variable) {
  if (home(tensor).place == Place::arena) {
    std::byte* const target = address(tensor);
    std::memcpy(pointer_variable, &target, sizeof target);
  } else {
    caller_slots_.push_back({pointer_variable, tensor});
  }
}

void Storage::bind_caller(const std::byte* const* inputs, std::byte* const* outputs) {
  // Kernels read inputs through pointers to const; only this table has forgotten that.
  for (size_t i = 0; i < caller_inputs_.size(); ++i) caller_inputs_[i] = const_cast<std::byte*>(inputs[i]);
  std::copy_n(outputs, caller_outputs_.size(), caller_outputs_.begin());
  for (const Slot& slot : caller_slots_) {
    std::byte* const target = address(slot.tensor);
    std::memcpy(slot.pointer_variable, &target, sizeof target);
  }
}

}  // namespace phonebit::cpu
