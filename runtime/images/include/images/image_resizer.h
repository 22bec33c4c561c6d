// An image turned and resized row by row, so that only rows in use are ever in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "images/resampling.h"
#include "images/row_reader.h"

namespace phonebit::engine::images {

/// The lines of a resized image, in the order in which the rows of the image lie in memory.
///
/// Pillow resamples the upright image along its rows first and rounds the results to levels. An image that
/// is turned by a quarter has its upright rows in its columns: the first pass combines its rows then, and the
/// second goes along them. Either way it is read row by row.
class ImageResizer {
 public:
  /// Axes belong to the image as it lies in memory: `columns` along its rows, `rows` down. `is_turned`:
  /// whether its columns are the upright rows.
  ImageResizer(const ImageLayout& image, RowColors colors, const Resampling& columns, const Resampling& rows,
               bool is_turned);

  /// Line number `window` of rows.windows: columns.windows.size() pixels of kLanes levels; valid until the
  /// next call. To be called for 0, 1, 2, ...
  const uint8_t* line(size_t window);

 private:
  void read(int row, uint8_t* slot);
  uint8_t* slot(int row) { return slots_.data() + static_cast<size_t>(row % rows_.stride) * slot_bytes_; }

  const ImageLayout& image_;
  RowColors colors_;
  const Resampling &columns_, &rows_;
  bool is_turned_;
  size_t slot_bytes_;
  int next_row_ = 0;             ///< rows before it have been read, or are not needed
  std::vector<uint8_t> slots_;   ///< the rows of the window, each in its place
  std::vector<uint8_t> source_;  ///< a row as it was read
  std::vector<uint8_t> sums_;    ///< rows of a window combined
  std::vector<uint8_t> line_;
  std::vector<const uint8_t*> window_rows_;
};

}  // namespace phonebit::engine::images
