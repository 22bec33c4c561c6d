// How long parts of one layer take on both processors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "coexec/executor.h"
#include "network.h"

namespace phonebit::coexec {

/// A layer with a part for each processor, ready to be measured on random content any number of times.
/// One caller at a time.
class LayerMeasurement {
 public:
  /// An absent part: that processor does nothing. Throws Error(input) for parts that cannot be, Error(device)
  /// when the device cannot compute its part.
  LayerMeasurement(const Processors& processors, size_t index, const std::optional<OutputPart>& cpu,
                   const std::optional<OutputPart>& gpu, Sharing sharing, Synchronization synchronization);

  bool is_of(size_t index, const std::optional<OutputPart>& cpu, const std::optional<OutputPart>& gpu) const;

  /// The least of up to `repeats` runs after a warm-up: whatever else the device does makes it slower.
  LayerTimes measure(int repeats);

 private:
  size_t index_;
  std::optional<OutputPart> cpu_, gpu_;
  Executor executor_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;
};

}  // namespace phonebit::coexec
