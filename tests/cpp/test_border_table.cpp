// What counts of different bits are compared with: limits that kernels may subtract, and windows that have too
// many bits.
#include <climits>
#include <cstdint>
#include <vector>

#include "analysis/border_table.h"
#include "doctest_strings.h"
#include "types/fail.h"

namespace {

using namespace phonebit::engine;
using analysis::BorderEntry;

cpu::ConvShape dense(int inputs, int outputs) {
  cpu::ConvShape shape{};
  shape.in_h = shape.in_w = shape.out_h = shape.out_w = shape.kernel_h = shape.kernel_w = 1;
  shape.stride_h = shape.stride_w = shape.dilation_h = shape.dilation_w = 1;
  shape.in_c = inputs;
  shape.out_c = outputs;
  shape.pad_value = -1;
  return shape;
}

}  // namespace

TEST_CASE("limits of any threshold are within 2^27") {
  const std::vector<int32_t> thresholds{INT_MIN, -33, -32, 0, 32, 33, INT_MAX};
  const auto outputs = static_cast<int>(thresholds.size());
  const std::vector<uint32_t> weights(thresholds.size(), 0x0f0f0f0f);
  const std::vector<int32_t> table = analysis::border_table(
      dense(32, outputs), weights.data(), thresholds.data(), BorderEntry::limit, outputs + 1);
  // 32 - 2 d >= T, and 0 for the channel that is none.
  CHECK(table == std::vector<int32_t>{1 << 27, 33, 33, 17, 1, 0, 0, 0});
}

TEST_CASE("windows of 2^27 bits are refused") {
  CHECK_THROWS_WITH_AS(analysis::border_table(dense(1 << 27, 1), nullptr, nullptr, BorderEntry::limit, 1),
                       "a window of 1x1x134217728 has 2^27 bits or more; use device 'cpu'", Error);
}
