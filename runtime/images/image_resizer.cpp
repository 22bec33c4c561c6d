#include "images/image_resizer.h"

#include <algorithm>

namespace phonebit::engine::images {

ImageResizer::ImageResizer(const ImageLayout& image, RowColors colors, const Resampling& columns,
                           const Resampling& rows, bool is_turned)
    : image_(image), colors_(colors), columns_(columns), rows_(rows), is_turned_(is_turned) {
  const size_t source_bytes = static_cast<size_t>(columns.input_end() - columns.input_begin()) * kLanes;
  const size_t line_bytes = columns.windows.size() * kLanes;
  slot_bytes_ = is_turned ? source_bytes : line_bytes;
  slots_.resize(slot_bytes_ * static_cast<size_t>(rows.stride) + kRowPadding);
  if (!is_turned) source_.resize(source_bytes + kRowPadding);
  if (rows.stride > 1) sums_.resize(slot_bytes_ + kRowPadding);
  if (is_turned) line_.resize(line_bytes);
  window_rows_.resize(static_cast<size_t>(rows.stride));
}

void ImageResizer::read(int row, uint8_t* slot) {
  uint8_t* pixels = is_turned_ ? slot : source_.data();
  read_row(image_, colors_, row, columns_.input_begin(), columns_.input_end(), pixels);
  if (!is_turned_) resample_along(columns_, pixels, slot);
}

const uint8_t* ImageResizer::line(size_t window) {
  const Window rows = rows_.windows[window];
  const int end = rows.first + rows.count;
  for (int row = std::max(next_row_, rows.first); row < end; ++row) read(row, slot(row));
  next_row_ = std::max(next_row_, end);
  const uint8_t* combined = slot(rows.first);
  if (rows_.stride > 1) {
    for (int k = 0; k < rows.count; ++k) window_rows_[static_cast<size_t>(k)] = slot(rows.first + k);
    resample_across(window_rows_.data(), rows_.weights_of(window), rows.count, slot_bytes_, sums_.data());
    combined = sums_.data();
  }
  if (!is_turned_) return combined;
  resample_along(columns_, combined, line_.data());
  return line_.data();
}

}  // namespace phonebit::engine::images
