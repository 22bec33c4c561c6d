// What a sliding window makes of a map.
#pragma once

#include <string>

#include "builder/layer_arguments.h"

namespace phonebit::engine::builder {

/// Height and width of the output. Throws Error(input) that begins with `where` if the window does not fit;
/// of a pool, also if some window has no tap inside the map.
struct MapSize {
  int height, width;
};
MapSize output_size(const Window& window, MapSize input, bool is_pool, const std::string& where);

}  // namespace phonebit::engine::builder
