// Runs a model on an OpenCL device, a whole batch at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lowering/memory_budget.h"
#include "opencl/device_storage.h"
#include "opencl/layer.h"
#include "phonebit/network.h"

namespace phonebit::opencl {

/// Layers, their memory and their enqueueing. One caller at a time; the in-order queue keeps layers in order.
class Executor {
 public:
  /// `model`, `context` and `programs` must outlive the executor.
  Executor(const loader::Model& model, Context& context, ProgramCache& programs, Precision precision,
           uint64_t max_memory_bytes);

  /// Prepares layer `index` with a kernel that can_serve it; replaces what was there. All layers need one
  /// before anything runs. Throws Error(device); then the layer stays as it was.
  void set_layer(size_t index, const KernelChoice& choice);

  Target target() const { return {context_.device(), precision_ == Precision::exact}; }
  const Layer& layer(size_t index) const { return layers_[index]; }
  const DeviceStorage& storage() const { return storage_; }
  size_t scratch_bytes() const;
  size_t weight_bytes() const;

  /// The largest batch that one pass can take: limits of memory, images and 32-bit indices. At least 1.
  int largest_batch() const;
  /// Makes everything ready for passes over `batch` images (up to largest_batch()).
  void prepare(int batch);

  /// Enqueues all layers. With `can_replay`, through a recorded command buffer where the device has them.
  void enqueue(bool can_replay);
  /// Enqueues one layer on `queue`; `events` (may be null) receives one for each command.
  void enqueue_layer(size_t index, cl_command_queue queue, std::vector<Handle<cl_event>>* events);
  /// Puts callers' buffers in place of the own ones, until called with empty lists.
  void bind_terminals(std::vector<cl_mem> inputs, std::vector<cl_mem> outputs);

  /// Copies images of a tensor between host and device, converting floats that are stored as half. Writes do
  /// not wait unless `must_wait`; `data` must stay until the queue has done them.
  void write(int tensor, const void* data, int images, bool must_wait);
  void read(int tensor, void* data, int images, bool must_wait);
  /// Waits until the queue is empty.
  void finish();

  bool uses_command_buffer() const { return recording_ && recorded_batch_ > 0; }

 private:
  void charge(const loader::Op& op);
  void bind_arguments();
  void bind_layer(Layer& layer);
  bool record();

  const loader::Model& model_;
  Context& context_;
  ProgramCache& programs_;
  Precision precision_;
  uint64_t max_memory_bytes_;
  lowering::MemoryBudget budget_;
  DeviceStorage storage_;
  std::vector<Layer> layers_;
  std::vector<Handle<cl_mem>> images_;  // one a layer, most of them empty
  Handle<cl_mem> scratch_;
  size_t scratch_capacity_ = 0;
  int batch_ = 0;
  bool is_bound_ = false;
  Handle<cl_command_buffer> recording_;
  int recorded_batch_ = 0;  // 0: nothing recorded, -1: recording failed
};

}  // namespace phonebit::opencl
