// How long parts of layers, and whole inferences, take on both processors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "coexec/auto_selection.h"
#include "coexec/executor.h"
#include "coexec/setup.h"
#include "types/cancellation.h"
#include "types/layer.h"

namespace phonebit::engine::coexec {

/// A layer on random content, whose parts can be measured any number of times. One caller at a time.
class LayerMeasurement {
 public:
  LayerMeasurement(const Processors& processors, size_t index, const Setup& setup);

  size_t index() const { return index_; }

  /// The minimum of up to `repeats` runs after a warm-up: whatever else the device does makes it slower. An
  /// absent part: that processor does nothing. Throws Error(input) for parts that cannot be, Error(device)
  /// when the device cannot compute its part; then this is good for nothing more.
  LayerTimes measure(const std::optional<OutputPart>& cpu, const std::optional<OutputPart>& gpu, int repeats,
                     const Cancellation& cancellation);

 private:
  /// Makes what runs these parts, unless it is there from the last time.
  void prepare(const std::optional<OutputPart>& cpu, const std::optional<OutputPart>& gpu);
  /// Of the tensors that the layer reads and writes, whichever part.
  void make_content();

  Options options_;
  Processors processors_;
  size_t index_;
  Sharing sharing_;
  Synchronization synchronization_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;
  std::optional<OutputPart> cpu_, gpu_;
  std::optional<Executor> executor_;
};

/// Of inferences of who is selected, over random content: the minimum total of `repeats` that keep no time, and
/// the layers of the quickest of as many that do. Those are of one inference, so that they add up. Throws what
/// the backend throws.
PassTimes measure_pass(const loader::Model& model, const AutoSelection& selection, int repeats,
                       const Cancellation& cancellation);

/// What the GPU launches for a part of a layer.
std::vector<DispatchInfo> dispatch(const Processors& processors, const Setup& setup, size_t index,
                                   const OutputPart& gpu);

}  // namespace phonebit::engine::coexec
