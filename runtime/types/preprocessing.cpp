#include "types/preprocessing.h"

#include <algorithm>

namespace phonebit::engine {

float Preprocessing::scale(int channel) const {
  return static_cast<float>((high - low) / 255.0 / deviation[std::clamp(channel, 0, 3)]);
}

float Preprocessing::offset(int channel) const {
  const int entry = std::clamp(channel, 0, 3);
  return static_cast<float>((low - mean[entry]) / deviation[entry]);
}

}  // namespace phonebit::engine
