// Where tensors live on a device: one arena, planned as on the CPU, and a buffer for each network input and
// output.
#pragma once

#include <vector>

#include "analysis/tensor_homes.h"
#include "gpu/device.h"
#include "gpu/layer.h"
#include "memory/arena_plan.h"
#include "types/tensor.h"

namespace phonebit::engine::gpu {

/// Whether a device stores a tensor as halves: floats between layers, below exact precision.
bool is_stored_as_half(const loader::Model& model, const analysis::TensorHomes& homes, int tensor,
                       Precision precision);

/// Memory for a number of images at once: tensors hold image after image.
class DeviceStorage final : public TensorMemory {
 public:
  DeviceStorage(const loader::Model& model, Device& device, Precision precision);

  /// Bytes of activations between layers for `batch` images.
  size_t arena_bytes(int batch) const { return plan_.bytes() * static_cast<size_t>(batch); }
  /// Bytes of the largest buffer for one image.
  size_t largest_buffer_bytes() const;
  size_t lower_bound_bytes() const { return plan_.lower_bound_bytes; }
  /// Makes room for `batch` images; what tensors held is lost when that needs new memory. Returns whether
  /// memory objects changed.
  bool reserve(int batch);
  int capacity() const { return capacity_; }

  /// Memory of a tensor: a caller's buffer while one is bound, else the storage's own.
  const DeviceMemory& memory(int tensor) const override;
  /// Puts callers' buffers in place of the own ones for all inputs and outputs; empty vectors end that.
  using Terminals = std::vector<const DeviceMemory*>;
  void bind_terminals(Terminals inputs, Terminals outputs);

  bool is_half(int tensor) const override { return is_half_[static_cast<size_t>(homes_.root(tensor))]; }
  bool is_shared(int a, int b) const override { return homes_.is_shared(a, b); }
  /// Of one image, as stored.
  size_t image_bytes(int tensor) const;
  const analysis::TensorHomes& homes() const { return homes_; }

 private:
  const loader::Model& model_;
  Device& device_;
  analysis::TensorHomes homes_;
  std::vector<bool> is_half_;  // by root
  memory::SlotPlan plan_;      // of one image
  int capacity_ = 0;
  std::vector<std::unique_ptr<DeviceMemory>> slots_, own_inputs_, own_outputs_;
  Terminals bound_inputs_, bound_outputs_;
};

}  // namespace phonebit::engine::gpu
