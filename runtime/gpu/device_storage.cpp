#include "gpu/device_storage.h"

#include <algorithm>

#include "types/fail.h"

namespace phonebit::engine::gpu {

using analysis::Place;
using analysis::TensorHome;
using format::DataType;
using loader::Model;

bool is_stored_as_half(const Model& model, const analysis::TensorHomes& homes, int tensor,
                       Precision precision) {
  return precision != Precision::exact && homes.home(tensor).place == Place::arena &&
         model.tensor(tensor).dtype == DataType::kF32;
}

DeviceStorage::DeviceStorage(const Model& model, Device& device, Precision precision)
    : model_(model), device_(device), homes_(model), is_half_(model.tensors.size(), false) {
  std::vector<memory::Lifetime> lifetimes = homes_.lifetimes();
  for (size_t i = 0; i < model.tensors.size() && !device.facts().takes_modules; ++i) {
    const auto tensor = static_cast<int>(i);
    if (is_stored_as_half(model, homes_, tensor, precision))
      is_half_[static_cast<size_t>(homes_.root(tensor))] = true;
  }
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const auto tensor = static_cast<int>(i);
    const TensorHome& home = homes_.home(tensor);
    // Tensors that no op touches have no buffer.
    if (home.place != Place::arena || static_cast<size_t>(home.index) >= lifetimes.size()) continue;
    if (homes_.root(tensor) == tensor) lifetimes[static_cast<size_t>(home.index)].bytes = image_bytes(tensor);
  }
  plan_ = memory::plan_slots(lifetimes);
  int conflict[2];
  if (!memory::verify_slots(lifetimes, plan_, conflict))
    fail(ErrorCode::internal, "device memory: buffers %d and %d overlap; please report this model",
         conflict[0], conflict[1]);
}

size_t DeviceStorage::largest_buffer_bytes() const {
  size_t result = 0;
  for (const size_t bytes : plan_.slot_bytes) result = std::max(result, bytes);
  return result;
}

size_t DeviceStorage::image_bytes(int tensor) const {
  const size_t bytes = model_.tensor(tensor).bytes();
  return is_half(tensor) ? bytes / 2 : bytes;
}

bool DeviceStorage::reserve(int batch) {
  if (batch <= capacity_) return false;
  // The old memory goes first: both together may be more than there is.
  slots_.clear();
  own_inputs_.clear();
  own_outputs_.clear();
  capacity_ = 0;
  const auto images = static_cast<size_t>(batch);
  for (const size_t bytes : plan_.slot_bytes)
    slots_.push_back(device_.buffer(bytes * images, nullptr, "activations"));
  for (const int tensor : model_.inputs)
    own_inputs_.push_back(device_.buffer(image_bytes(tensor) * images, nullptr, "a network input"));
  for (const int tensor : model_.outputs)
    own_outputs_.push_back(device_.buffer(image_bytes(tensor) * images, nullptr, "a network output"));
  capacity_ = batch;
  return true;
}

void DeviceStorage::bind_terminals(Terminals inputs, Terminals outputs) {
  bound_inputs_ = std::move(inputs);
  bound_outputs_ = std::move(outputs);
}

const DeviceMemory& DeviceStorage::memory(int tensor) const {
  const TensorHome& home = homes_.home(tensor);
  const auto index = static_cast<size_t>(home.index);
  switch (home.place) {
    case Place::input:
      return bound_inputs_.empty() ? *own_inputs_[index] : *bound_inputs_[index];
    case Place::output:
      return bound_outputs_.empty() ? *own_outputs_[index] : *bound_outputs_[index];
    case Place::arena:
      break;
  }
  return *slots_[static_cast<size_t>(plan_.slot_of[index])];
}

}  // namespace phonebit::engine::gpu
