// The best classes of a classifier's output.
#pragma once

#include <string>
#include <vector>

#include "engine.h"

namespace phonebit::tools {

/// One class with what the network thinks of it.
struct Guess {
  int index;
  std::string label;
  float score;
  double probability;
};

/// Whether the first output is one vector of class scores: real-valued, without a map.
bool is_classifier(const Network& network);

/// The best classes of one image, best first.
///
/// `scores` are its numbers in the first output; `top` is the most that are given.
std::vector<Guess> best_classes(const Network& network, const float* scores, int top);

}  // namespace phonebit::tools
