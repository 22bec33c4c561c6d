// Rows of images resampled by every instruction set, against the formula in 64 bits. Sizes straddle the pixels of a
// vector; weights are those of a filter that overshoots, so that sums leave a level's range on both sides.
#include "kernel_check.h"

namespace check {
namespace {

constexpr uint8_t kGuard = 0xa5;

/// `count` weights whose sum is 1, some of them negative.
std::vector<int32_t> random_weights(Random& random, int count) {
  std::vector<int32_t> weights((size_t)count);
  int32_t rest = 1 << kWeightBits;
  for (int32_t& weight : weights) {
    weight = pick(random, -(1 << 19), 1 << 20);
    rest -= weight;
  }
  weights[random() % weights.size()] += rest;
  return weights;
}

std::vector<uint8_t> random_levels(Random& random, size_t count) {
  std::vector<uint8_t> levels(count);
  const bool is_extreme = random() % 2 == 0;
  for (uint8_t& level : levels) level = (uint8_t)(is_extreme ? (random() % 2) * 255 : random());
  return levels;
}

uint8_t level_of(int64_t sum) {
  const int64_t level = (sum + (1 << (kWeightBits - 1))) >> kWeightBits;
  return (uint8_t)std::clamp<int64_t>(level, 0, 255);
}

void check_along(const ResamplingKernels& kernels, Random& random) {
  const int pixels = pick(random, 1, 40), outputs = pick(random, 1, 20);
  const int places = (pixels + kSamplePlaces - 1) / kSamplePlaces * kSamplePlaces;
  std::vector<SampleWindow> windows;
  std::vector<int32_t> weights((size_t)(outputs * places));
  for (int i = 0; i < outputs; i++) {
    const int first = pick(random, 0, pixels - 1), count = pick(random, 1, std::min(pixels - first, 9));
    windows.push_back({first, count});
    const std::vector<int32_t> own = random_weights(random, count);
    std::copy(own.begin(), own.end(), weights.begin() + i * places);
  }
  // What is after a row has no influence.
  const std::vector<uint8_t> row = random_levels(random, (size_t)(pixels + kSamplePlaces) * kPixelLevels);
  std::vector<uint8_t> out((size_t)outputs * kPixelLevels + 1, kGuard), expected;
  kernels.along(windows.data(), windows.size(), weights.data(), (size_t)places, row.data(), out.data());
  for (int i = 0; i < outputs; i++) {
    for (int level = 0; level < kPixelLevels; level++) {
      int64_t sum = 0;
      for (int k = 0; k < windows[(size_t)i].count; k++)
        sum += (int64_t)weights[(size_t)(i * places + k)] *
               row[(size_t)((windows[(size_t)i].first + k) * kPixelLevels + level)];
      expected.push_back(level_of(sum));
    }
  }
  expected.push_back(kGuard);
  CHECK(out == expected);
}

void check_across(const ResamplingKernels& kernels, Random& random) {
  const size_t bytes = (size_t)pick(random, 1, 70) * kPixelLevels;
  const int count = pick(random, 1, 9);
  const std::vector<int32_t> weights = random_weights(random, count);
  std::vector<std::vector<uint8_t>> levels;
  std::vector<const uint8_t*> rows;
  for (int k = 0; k < count; k++) levels.push_back(random_levels(random, bytes));
  for (const std::vector<uint8_t>& row : levels) rows.push_back(row.data());
  std::vector<uint8_t> out(bytes + 1, kGuard), expected;
  kernels.across(rows.data(), weights.data(), count, bytes, out.data());
  for (size_t at = 0; at < bytes; at++) {
    int64_t sum = 0;
    for (int k = 0; k < count; k++) sum += (int64_t)weights[(size_t)k] * rows[(size_t)k][at];
    expected.push_back(level_of(sum));
  }
  expected.push_back(kGuard);
  CHECK(out == expected);
}

TEST_CASE("rows of images, along") {
  for_each_isa(&Isa::resampling, test_cases(300),
               [](const Isa& isa, Random& random) { check_along(*isa.resampling, random); });
}
TEST_CASE("rows of images, across") {
  for_each_isa(&Isa::resampling, test_cases(300),
               [](const Isa& isa, Random& random) { check_across(*isa.resampling, random); });
}

}  // namespace
}  // namespace check
