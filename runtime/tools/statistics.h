// Numbers of many runs, and a loop that shows whether the machine was disturbed meanwhile.
#pragma once

#include <vector>

namespace phonebit::tools {

/// Milliseconds of a clock that only goes forward.
double now_ms();

/// The value below which `share` (0 to 1) of the values lie, interpolated between neighbours as NumPy does.
/// There must be a value.
double quantile(std::vector<double> values, double share);

/// Milliseconds of a loop that always does the same: it slows down only if the machine does.
double canary_ms();

/// A machine counts as disturbed above this ratio of the canary's 90th percentile to its minimum.
constexpr double canary_limit = 1.15;

}  // namespace phonebit::tools
