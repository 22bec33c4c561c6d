// What the samples of a resized axis are made of.
#include <algorithm>
#include <cmath>

#include "images/resampling.h"

namespace phonebit::engine::images {
namespace {

constexpr int32_t kOne = 1 << kWeightBits;

/// Keys' cubic with a = -1/2, by Horner's rule.
double cubic(double x) {
  constexpr double a = -0.5;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double filter(Interpolation interpolation, double x) {
  const double distance = std::fabs(x);
  return interpolation == Interpolation::bicubic ? cubic(distance) : std::max(0.0, 1.0 - distance);
}

/// Rounded, halves away from zero.
int32_t fixed_point(double weight) {
  return static_cast<int32_t>(weight * kOne + (weight < 0.0 ? -0.5 : 0.5));
}

/// Every output sample is one input sample.
Resampling copies(int count) {
  Resampling axis{{}, std::vector<int32_t>(static_cast<size_t>(count), kOne), 1, 1};
  axis.windows.reserve(static_cast<size_t>(count));
  return axis;
}

Resampling nearest(int from, int to, int begin, int count) {
  Resampling axis = copies(count);
  const double scale = static_cast<double>(from) / to;
  // Centres by repeated addition: products would round otherwise, and choose other samples than Pillow.
  double centre = scale * 0.5;
  for (int i = 0; i < begin + count; ++i, centre += scale) {
    if (i >= begin) axis.windows.push_back({std::min(static_cast<int>(centre), from - 1), 1});
  }
  return axis;
}

Resampling filtered(int from, int to, int begin, int count, Interpolation interpolation) {
  const double scale = static_cast<double>(from) / to;
  const double widening = std::max(scale, 1.0);
  const double support = (interpolation == Interpolation::bicubic ? 2.0 : 1.0) * widening;
  const int maximum = std::min(from, 2 * static_cast<int>(std::ceil(support)) + 1);
  constexpr int kPlaces = cpu::kSamplePlaces;
  const auto pitch = static_cast<size_t>((maximum + kPlaces - 1) / kPlaces * kPlaces);
  Resampling axis{{}, std::vector<int32_t>(static_cast<size_t>(count) * pitch), maximum, pitch};
  axis.windows.reserve(static_cast<size_t>(count));
  std::vector<double> weights(static_cast<size_t>(maximum));
  for (int i = 0; i < count; ++i) {
    const double centre = (begin + i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int end = std::min(from, static_cast<int>(centre + support + 0.5));
    double sum = 0.0;
    for (int x = first; x < end; ++x) {
      const double weight = filter(interpolation, (x - centre + 0.5) * (1.0 / widening));
      weights[static_cast<size_t>(x - first)] = weight;
      sum += weight;
    }
    int32_t* fixed = axis.weights.data() + static_cast<size_t>(i) * pitch;
    for (int x = first; x < end; ++x) *fixed++ = fixed_point(weights[static_cast<size_t>(x - first)] / sum);
    axis.windows.push_back({first, end - first});
  }
  return axis;
}

}  // namespace

Resampling make_resampling(int from, int to, int begin, int count, Interpolation interpolation) {
  if (from == to) {
    Resampling axis = copies(count);
    for (int i = begin; i < begin + count; ++i) axis.windows.push_back({i, 1});
    return axis;
  }
  if (interpolation == Interpolation::nearest) return nearest(from, to, begin, count);
  return filtered(from, to, begin, count, interpolation);
}

void reverse(Resampling& axis, int from) {
  for (size_t i = 0; i < axis.windows.size(); ++i) {
    Window& window = axis.windows[i];
    window.first = from - window.first - window.count;
    int32_t* weights = axis.weights.data() + i * axis.pitch;
    std::reverse(weights, weights + window.count);
  }
  // All windows have `pitch` places, so turning the windows round turns their places round.
  const size_t count = axis.windows.size();
  for (size_t i = 0; i < count / 2; ++i) {
    const auto place = [&](size_t window) {
      return axis.weights.begin() + static_cast<ptrdiff_t>(window * axis.pitch);
    };
    std::swap_ranges(place(i), place(i + 1), place(count - 1 - i));
  }
  std::reverse(axis.windows.begin(), axis.windows.end());
}

}  // namespace phonebit::engine::images
