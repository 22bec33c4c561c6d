// Who computes what of a network: the plan by which a CPU and a GPU work on one image together.
#pragma once

#include <string>
#include <vector>

namespace phonebit::engine {

enum class Processor { cpu = 0, gpu = 1 };

/// A rectangle of a layer's output: rows [row_begin, row_end), channels [channel_begin, channel_end), all
/// columns. Every output of the layer has the same rectangle.
struct OutputPart {
  int row_begin, row_end;
  int channel_begin, channel_end;

  bool operator==(const OutputPart& other) const {
    return row_begin == other.row_begin && row_end == other.row_end && channel_begin == other.channel_begin &&
           channel_end == other.channel_end;
  }
};

/// What one processor computes of one layer.
struct PlannedPart {
  int stage;  ///< stages count from 0 without gaps
  Processor processor;
  int layer;  ///< index in Network::layers()
  OutputPart part;
};

/// Stages run one after the other. In a stage both processors run their parts, each in the order given,
/// without waiting for each other; a part reads what earlier stages have completed and what the same
/// processor wrote in the stage. So one layer on both is a stage (µLayer, Fine-Grained), as is a chain of
/// layers that are cut by rows (CoDL), as are branches that run side by side (µLayer).
///
/// A layer belongs to one stage. What a later stage reads, or the network gives, is covered exactly once by
/// the layer's parts; other tensors are private to the processor that wrote them, and may overlap (a chain's
/// halos).
struct ExecutionPlan {
  std::string device;              ///< key of the device profile it was made for
  std::string method;              ///< "search", "ulayer", "codl", "finegrained", "combined" or "user"
  double predicted_ms = 0.0;       ///< 0: not predicted
  std::vector<PlannedPart> parts;  ///< by stage
};

}  // namespace phonebit::engine
