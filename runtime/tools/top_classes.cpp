#include "top_classes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace phonebit::tools {

bool is_classifier(const Network& network) {
  const TensorInfo output = network.outputs()[0];
  return output.type == Type::f32 && output.height == 1 && output.width == 1;
}

std::vector<Guess> best_classes(const Network& network, const float* scores, int top) {
  const auto count = static_cast<size_t>(network.outputs()[0].channels);
  const std::vector<std::string> labels = network.labels();
  // Scores are probabilities already, or softmax makes them such: exp(s_i) / sum_j exp(s_j), the maximum
  // taken off first.
  const bool is_softmax = network.layers().back().kind == "softmax";
  const double largest = *std::max_element(scores, scores + count);
  std::vector<double> powers(scores, scores + count);
  if (!is_softmax)
    for (double& power : powers) power = std::exp(power - largest);
  const double total = is_softmax ? 1.0 : std::accumulate(powers.begin(), powers.end(), 0.0);

  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(count, static_cast<size_t>(top)));
  std::vector<Guess> guesses;
  for (size_t i : order) {
    const std::string label = i < labels.size() ? labels[i] : "class " + std::to_string(i);
    guesses.push_back({static_cast<int>(i), label, scores[i], powers[i] / total});
  }
  return guesses;
}

}  // namespace phonebit::tools
