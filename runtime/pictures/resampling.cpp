#include "pictures/resampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace phonebit::pictures {
namespace {

constexpr int32_t kOne = 1 << kWeightBits;
constexpr int32_t kHalf = kOne / 2;

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

uint8_t level(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

/// Every output sample is one input sample.
Resampling copies(int count) {
  Resampling axis{{}, std::vector<int32_t>(static_cast<size_t>(count), kOne), 1};
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
  const int most = std::min(from, 2 * static_cast<int>(std::ceil(support)) + 1);
  Resampling axis{{}, std::vector<int32_t>(static_cast<size_t>(count) * static_cast<size_t>(most)), most};
  axis.windows.reserve(static_cast<size_t>(count));
  std::vector<double> weights(static_cast<size_t>(most));
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
    int32_t* fixed = axis.weights.data() + static_cast<size_t>(i) * static_cast<size_t>(most);
    for (int x = first; x < end; ++x) *fixed++ = fixed_point(weights[static_cast<size_t>(x - first)] / sum);
    axis.windows.push_back({first, end - first});
  }
  return axis;
}

/// One pixel from `count` neighbours. Compilers keep its lanes in one vector.
void combine(const uint8_t* pixels, const int32_t* weights, int count, uint8_t* out) {
  int32_t sums[kLanes] = {kHalf, kHalf, kHalf, kHalf};
  for (int k = 0; k < count; ++k, pixels += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += pixels[lane] * weights[k];
  }
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = level(sums[lane]);
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
    int32_t* weights = axis.weights.data() + i * static_cast<size_t>(axis.stride);
    std::reverse(weights, weights + window.count);
  }
  // All windows have `stride` places, so turning the windows round turns their places round.
  const size_t count = axis.windows.size();
  for (size_t i = 0; i < count / 2; ++i) {
    const auto place = [&](size_t window) {
      return axis.weights.begin() + static_cast<ptrdiff_t>(window * static_cast<size_t>(axis.stride));
    };
    std::swap_ranges(place(i), place(i + 1), place(count - 1 - i));
  }
  std::reverse(axis.windows.begin(), axis.windows.end());
}

void resample_along(const Resampling& axis, const uint8_t* row, uint8_t* out) {
  const int begin = axis.input_begin();
  for (size_t i = 0; i < axis.windows.size(); ++i, out += kLanes) {
    const Window window = axis.windows[i];
    const uint8_t* pixels = row + static_cast<ptrdiff_t>(window.first - begin) * kLanes;
    if (axis.stride == 1)
      std::memcpy(out, pixels, kLanes);
    else
      combine(pixels, axis.weights_of(i), window.count, out);
  }
}

void resample_across(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes,
                     uint8_t* out) {
  // A block's sums stay in the first level of cache while the rows go by.
  constexpr size_t kBlock = 256;
  int32_t sums[kBlock];
  for (size_t begin = 0; begin < bytes; begin += kBlock) {
    const size_t width = std::min(kBlock, bytes - begin);
    std::fill(sums, sums + width, kHalf);
    for (int k = 0; k < count; ++k) {
      const uint8_t* row = rows[k] + begin;
      const int32_t weight = weights[k];
      for (size_t i = 0; i < width; ++i) sums[i] += row[i] * weight;
    }
    for (size_t i = 0; i < width; ++i) out[begin + i] = level(sums[i]);
  }
}

}  // namespace phonebit::pictures
