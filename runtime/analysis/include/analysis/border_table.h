// Zero padding of binary convolutions without run-time cost: cpu_backend/portable/border_classes.inl has the
// derivation.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_types.h"

namespace phonebit::engine::analysis {

/// True when some window reaches over the map's edge.
bool reaches_padding(const cpu::ConvShape& shape);

/// Output pixels whose windows have the same padded taps form a class: row class times column class.
struct BorderClasses {
  int rows, columns;                        ///< numbers of classes; 1 and 1 for pad_value -1 and +1
  std::vector<uint16_t> row_of, column_of;  ///< class of each output row and column
};
BorderClasses border_classes(const cpu::ConvShape& shape);

/// What a class's count d of different bits is compared with, or subtracted from.
enum class BorderEntry {
  base,   ///< acc = base - 2 d
  limit,  ///< acc >= T <=> d < limit; 0 to 2^27, which is beyond every d
  room,   ///< acc >= T <=> 2 d <= room = base - T
};

/// [rows * columns][stride] entries of all channels; channels from out_c to `stride` have 0, `room` -1.
/// `shape.in_c` is that of one group, weights [out_c][kernel_h][kernel_w][words(in_c)]; thresholds: one a
/// channel (unused for `base`). Throws Error(device) if a window has 2^27 bits or more.
std::vector<int32_t> border_table(const cpu::ConvShape& shape, const uint32_t* weights,
                                  const int32_t* thresholds, BorderEntry entry, int stride);

}  // namespace phonebit::engine::analysis
