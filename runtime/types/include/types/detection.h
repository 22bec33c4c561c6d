// What the outputs of a detector mean.
#pragma once

#include <cstdint>
#include <vector>

namespace phonebit::engine {

/// How the channels of a detector's output are arranged (docs/detection.md has the formulas), by the file's
/// numbers.
enum class HeadKind : uint32_t {
  yolov2 = 1,  ///< for each anchor in turn: x, y, w, h, objectness, classes
};

/// A box prior: its size in cells of the output map.
struct Anchor {
  float width, height;
};

/// What boxes the numbers of an output mean. The engine never applies it: forward() gives the numbers.
struct DetectionHead {
  int output;  ///< index in Network::outputs()
  HeadKind kind;
  std::vector<Anchor> anchors;
};

}  // namespace phonebit::engine
