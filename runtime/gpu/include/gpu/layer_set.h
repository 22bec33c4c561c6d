// The layers of a model on a device: chosen, bound to memory, enqueued.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/kernel_chooser.h"
#include "gpu/layer.h"
#include "types/layer.h"
#include "types/options.h"
#include "types/plan.h"

namespace phonebit::engine::gpu {

/// Bytes of weights and tables that an op will need on a device at most, before any of it is allocated.
uint64_t max_weight_bytes(const loader::Model& model, const loader::Op& op);

/// Prepares any of a model's layers, binds them to tensors and enqueues them. A layer computes a whole batch
/// or a part of one image, in place in the whole tensors. One caller at a time.
class LayerSet {
 public:
  /// No layer is prepared yet. `model`, `programs` and `memory` must outlive this.
  LayerSet(const loader::Model& model, std::shared_ptr<Device> device, ProgramCache& programs,
           const Options& options, const TensorMemory& memory);

  /// Prepares a layer with the kernel that the tuning tables give it, if it is not yet. Throws Error(device)
  /// where there is none.
  void prepare(size_t index);
  /// The same for parts of its channels (and rows): they have one program. The layer must be one
  /// that analysis::can_split_channels.
  void prepare_channel_parts(size_t index);
  /// Prepares a layer with a choice that supports it (and has a channel_grain, for parts); replaces what was
  /// there. Throws Error(device); then the layer stays as it was.
  void set(size_t index, const KernelChoice& choice, bool has_channel_parts = false);

  /// Binds a prepared layer to its tensors, for a batch. Anew when memory has moved.
  void bind(size_t index, int batch);
  /// For a part of one image; a part of the channels needs prepare_channel_parts(). Where the kernel cannot
  /// begin at the part's first channel, the next one of the tables does. Throws Error(device) if none can.
  void bind_part(size_t index, const OutputPart& part);
  /// For output pixels [first, end), counted over a batch. Parts of a batch are bound and enqueued in order
  /// from the first pixel on. The layer must be one with analysis::has_pixel_parts.
  void bind_pixels(size_t index, int first, int end, int batch);

  /// Enqueues what is bound; `events` (may be null) receives one for each command.
  void enqueue(size_t index, Queue& queue, Events* events) const;
  /// Adds what is bound to a recording. False where that is not possible: the driver refuses, or there are
  /// commands that are no launches.
  bool record(size_t index, Recording& recording) const;

  Target target() const { return {device_->facts(), options_.precision == Precision::exact}; }
  const Layer& layer(size_t index) const { return entries_[index].layer; }
  const KernelChoice& choice(size_t index) const { return entries_[index].choice; }
  /// The launches of a bound layer.
  std::vector<DispatchInfo> dispatch(size_t index) const;

  /// Largest of all layers, for one image.
  size_t scratch_bytes() const;
  size_t weight_bytes() const;
  /// Choices that were refused, and why.
  std::vector<std::string> warnings() const;
  int self_tests_run() const;

 private:
  /// Pixels over the batch, channels, and the rows that are copied into the layer's image.
  struct Range {
    int first_pixel = 0, end_pixel = 0;
    int first_channel = 0, end_channel = 0;
    size_t first_row = 0, end_row = 0;
  };
  struct Entry {
    Layer layer;
    KernelChoice choice;
    bool is_prepared = false;
    Range bound;
    std::vector<Extent> global;  // empty: not bound, or nothing to launch
    std::unique_ptr<DeviceMemory> image;
    size_t image_rows = 0;
  };

  void choose(size_t index, std::optional<int> part_channel);
  void bind_range(size_t index, const Range& range, int images);
  void reserve_scratch(size_t bytes);
  void set_arguments(size_t index);
  WorkSize work_size(size_t index, size_t launch) const;
  /// Throws the error again, saying which layer it concerns.
  [[noreturn]] void fail_in_layer(size_t index, const Error& error) const;

  const loader::Model& model_;
  std::shared_ptr<Device> device_;
  ProgramCache& programs_;
  Options options_;
  const TensorMemory& memory_;
  std::unique_ptr<KernelChooser> chooser_;  // made for the first layer that is prepared by the tables
  std::vector<Entry> entries_;
  std::unique_ptr<DeviceMemory> scratch_;
  size_t scratch_capacity_ = 0;
};

}  // namespace phonebit::engine::gpu
