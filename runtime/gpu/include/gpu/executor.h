// Runs a model on a device, a whole batch at a time.
#pragma once

#include <memory>
#include <vector>

#include "analysis/memory_budget.h"
#include "gpu/device.h"
#include "gpu/device_storage.h"
#include "gpu/layer_set.h"
#include "types/cancellation.h"
#include "types/options.h"
#include "types/tensor.h"

namespace phonebit::engine::gpu {

/// All layers over their memory. One caller at a time; the in-order queue keeps layers in order.
class Executor {
 public:
  /// `model` and `programs` must outlive the executor.
  Executor(const loader::Model& model, std::shared_ptr<Device> device, ProgramCache& programs,
           const Options& options);

  /// Prepares layer `index` with the kernel that the tables give it. All layers need one before anything
  /// runs. Throws Error(device).
  void prepare_layer(size_t index);
  /// With a kernel that supports it; replaces what was there. Throws Error(device); then the layer stays as
  /// it was.
  void set_layer(size_t index, const KernelChoice& choice, bool has_channel_parts = false);

  const LayerSet& layers() const { return layers_; }
  const DeviceStorage& storage() const { return storage_; }

  /// The largest batch of one inference: limits of memory, images and 32-bit indices. At least 1.
  int largest_batch() const;
  /// Images that it is prepared for; 0: none yet.
  int batch() const { return batch_; }
  /// Makes everything ready for inferences over `batch` images (up to largest_batch()).
  void prepare(int batch);

  /// Enqueues all layers. With `can_replay`, by a Recording where the device can.
  /// With a cancellation it waits for most of them where they are much work, and throws Error(cancelled)
  /// between two parts of it.
  /// Layers before `first_layer` are in the queue already.
  void enqueue(bool can_replay, const Cancellation* cancellation, size_t first_layer = 0);
  /// Enqueues the first layer for images [begin, end) of the batch. All of them are enqueued in order.
  void enqueue_first_layer(int begin, int end);
  /// Whether the first layer can be enqueued for some images at a time, without a look at a cancellation.
  bool has_parts_of_first_layer() const;
  /// Runs all layers on the profiling queue; returns the milliseconds of each. Throws as enqueue.
  std::vector<double> run_timed(const Cancellation& cancellation);
  /// Runs one layer. Throws as enqueue.
  void run_layer(size_t index, const Cancellation& cancellation);
  /// Enqueues one layer on `queue`; `events` (may be null) receives one for each command.
  void enqueue_layer(size_t index, Queue& queue, Events* events);
  /// Enqueues a part of a layer, of one image; the layer is bound to that part until the next prepare().
  void enqueue_part(size_t index, const OutputPart& part);
  /// Puts callers' buffers in place of the own ones, until called with empty lists.
  void bind_terminals(DeviceStorage::Terminals inputs, DeviceStorage::Terminals outputs);

  /// Copies images of a tensor between host and device, converting floats that are stored as half. Writes do
  /// not wait unless `must_wait`; `data` must stay until the queue has done them.
  void write(int tensor, const void* data, int images, bool must_wait);
  void read(int tensor, void* data, int images, bool must_wait);

  bool uses_command_buffer() const { return recording_ && recorded_batch_ > 0; }

 private:
  void bind_arguments();
  class Portions;
  template <class Enqueue>
  void for_each_part(size_t index, const Enqueue& enqueue);
  void enqueue_in_portions(size_t begin, size_t end, const Cancellation& cancellation);
  bool record();

  const loader::Model& model_;
  std::shared_ptr<Device> device_;
  uint64_t max_memory_bytes_;
  analysis::MemoryBudget budget_;
  DeviceStorage storage_;
  LayerSet layers_;
  int batch_ = 0;
  bool is_bound_ = false;
  std::unique_ptr<Recording> recording_;
  int recorded_batch_ = 0;  // 0: nothing recorded, -1: recording failed
};

}  // namespace phonebit::engine::gpu
