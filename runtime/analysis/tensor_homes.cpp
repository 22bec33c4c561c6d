#include "analysis/tensor_homes.h"

#include "analysis/op_tensors.h"
#include "analysis/plane_pairs.h"

namespace phonebit::engine::analysis {

using format::OpKind;
using loader::Model;
using loader::Op;

TensorHomes::TensorHomes(const Model& model) : pairs_(plane_pairs(model)) {
  homes_.resize(model.tensors.size());
  for (size_t i = 0; i < homes_.size(); ++i) homes_[i].root = static_cast<int>(i);
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    mutable_home(model.outputs[i]).place = Place::output;
    mutable_home(model.outputs[i]).index = static_cast<int>(i);
  }
  // Second, since a tensor that is input and output is read in place, and copied at the end.
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    mutable_home(model.inputs[i]).place = Place::input;
    mutable_home(model.inputs[i]).index = static_cast<int>(i);
  }
  for (const Op& op : model.ops) {
    if (op.kind == OpKind::kReshape) share_reshaped(op);
  }
  share_residual_sums(model);
  find_lifetimes(model);
}

/// Tensors are written once, so two of equal content may share memory for good, unless both sides are tied to
/// different buffers of the caller.
void TensorHomes::share_reshaped(const Op& op) {
  const int from = op.operands[0];
  const int to = op.record.value_output;
  if (home(to).place == Place::output) {
    if (home(from).place != Place::arena) return;
    const TensorHome target = home(to);
    mutable_home(from).place = target.place;
    mutable_home(from).index = target.index;
  }
  homes_[static_cast<size_t>(to)].root = root(from);
}

/// A residual sum takes the place of the shortcut that dies with it, so that one map is in the cache instead
/// of two: binary convolutions finish each pixel once, and read an element of the shortcut before they write
/// it.
void TensorHomes::share_residual_sums(const Model& model) {
  std::vector<int> last_reader(homes_.size(), -1);  // of a root
  for (size_t i = 0; i < model.ops.size(); ++i) {
    for (const int tensor : tensors_read(model.ops[i]))
      last_reader[static_cast<size_t>(root(tensor))] = static_cast<int>(i);
  }
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    const int sum = op.record.value_output;
    if (op.kind != OpKind::kBinaryConv2d || sum < 0 || home(sum).place != Place::arena) continue;
    for (const format::StepRecord& step : op.steps) {
      if (loader::traits(step).form != ops::StepForm::add) continue;
      const int shortcut = step.tensor;
      const bool dies_here = last_reader[static_cast<size_t>(root(shortcut))] == static_cast<int>(i);
      const bool same_size = model.tensor(shortcut).bytes() == model.tensor(sum).bytes();
      if (home(shortcut).place != Place::arena || !dies_here || !same_size) continue;
      last_reader[static_cast<size_t>(root(shortcut))] = last_reader[static_cast<size_t>(root(sum))];
      for (TensorHome& other : homes_) {
        if (other.root == sum) other.root = root(shortcut);
      }
      break;
    }
  }
}

void TensorHomes::find_lifetimes(const Model& model) {
  std::vector<int> buffer_of_root(homes_.size(), -1);
  const auto touch = [&](int tensor, int step) {
    TensorHome& place = mutable_home(tensor);
    if (place.place != Place::arena) return;
    int& buffer = buffer_of_root[static_cast<size_t>(root(tensor))];
    if (buffer < 0) {
      buffer = static_cast<int>(lifetimes_.size());
      place.index = buffer;
      lifetimes_.push_back({model.tensor(tensor).bytes(), step, step});
    }
    lifetimes_[static_cast<size_t>(buffer)].last = step;
  };
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    const int step = static_cast<int>(i);
    for (const int tensor : tensors_read(op)) touch(tensor, step);
    if (is_pair_of_planes(i)) touch(model.ops[i - 1].operands[0], step);
    for (const int tensor : tensors_written(op)) touch(tensor, step);
  }
  for (size_t i = 0; i < model.ops.size(); ++i) {
    if (!are_planes_of_the_op_before(model, i)) continue;
    for (const int plane : tensors_written(model.ops[i])) {
      const TensorHome& place = home(plane);
      if (place.place == Place::arena)
        lifetimes_[static_cast<size_t>(place.index)].first = static_cast<int>(i) - 1;
    }
  }
}

bool TensorHomes::are_planes_of_the_op_before(const Model& model, size_t index) const {
  const Op& op = model.ops[index];
  if (op.kind != OpKind::kBitPlanes || index == 0) return false;
  const format::OpRecord& before = model.ops[index - 1].record;
  const int value = op.operands[0];
  if (value != before.value_output || before.bits_output >= 0 || home(value).place != Place::arena)
    return false;
  return lifetimes_[static_cast<size_t>(home(value).index)].last == static_cast<int>(index);
}

}  // namespace phonebit::engine::analysis
