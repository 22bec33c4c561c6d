// Float32 to IEEE half and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace phonebit::engine::format {

/// Round to nearest even; too large becomes infinity. By the processor's instructions where there are such.
void to_halves(const float* values, size_t count, uint16_t* halves);
std::vector<uint16_t> to_halves(const float* values, size_t count);
/// Exact.
void from_halves(const uint16_t* halves, size_t count, float* values);

}  // namespace phonebit::engine::format
