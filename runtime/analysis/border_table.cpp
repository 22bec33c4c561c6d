#include "analysis/border_table.h"

#include "types/fail.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/border_classes.inl"
}  // namespace
}  // namespace phonebit::engine::cpu

namespace phonebit::engine::analysis {

using cpu::ConvShape;

namespace {
constexpr int kBeyondCounts = 1 << 27;  // kernels take the upper four bits of d - limit as its sign
}

bool reaches_padding(const ConvShape& shape) { return cpu::reaches_padding(shape); }

BorderClasses border_classes(const ConvShape& shape) {
  BorderClasses result;
  std::vector<int> rows(static_cast<size_t>(shape.out_h)), columns(static_cast<size_t>(shape.out_w));
  result.rows = cpu::row_classes(shape, rows.data());
  result.columns = cpu::column_classes(shape, columns.data());
  if (result.rows > UINT16_MAX + 1 || result.columns > UINT16_MAX + 1)
    fail(ErrorCode::device, "a window of %dx%d has more than 65536 border classes; use device 'cpu'",
         shape.kernel_h, shape.kernel_w);
  result.row_of.assign(rows.begin(), rows.end());
  result.column_of.assign(columns.begin(), columns.end());
  return result;
}

std::vector<int32_t> border_table(const ConvShape& shape, const uint32_t* weights, const int32_t* thresholds,
                                  BorderEntry entry, int stride) {
  const BorderClasses classes = border_classes(shape);
  const auto channels = static_cast<size_t>(stride);
  const size_t filter_words = static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w) *
                              static_cast<size_t>(cpu::words(shape.in_c));
  if (int64_t{shape.kernel_h} * shape.kernel_w * shape.in_c >= kBeyondCounts)
    fail(ErrorCode::device, "a window of %dx%dx%d has 2^27 bits or more; use device 'cpu'", shape.kernel_h,
         shape.kernel_w, shape.in_c);
  const int32_t unused = entry == BorderEntry::room ? -1 : 0;
  std::vector<int32_t> table(
      static_cast<size_t>(classes.rows) * static_cast<size_t>(classes.columns) * channels, unused);
  // One pixel of each class tells its padded taps; neighbours of one class are one row or column.
  for (int y = 0; y < shape.out_h; ++y) {
    const int row = classes.row_of[static_cast<size_t>(y)];
    if (y > 0 && row == classes.row_of[static_cast<size_t>(y) - 1]) continue;
    for (int x = 0; x < shape.out_w; ++x) {
      const int column = classes.column_of[static_cast<size_t>(x)];
      if (x > 0 && column == classes.column_of[static_cast<size_t>(x) - 1]) continue;
      int32_t* const out = table.data() + static_cast<size_t>(row * classes.columns + column) * channels;
      for (int c = 0; c < shape.out_c; ++c) {
        const auto channel = static_cast<size_t>(c);
        const int32_t base = cpu::border_base(shape, weights + channel * filter_words,
                                              cpu::row_span(shape, y), cpu::column_span(shape, x));
        switch (entry) {
          case BorderEntry::base:
            out[channel] = base;
            break;
          case BorderEntry::limit:
            out[channel] =
                static_cast<int32_t>(cpu::popcount_limit(base, thresholds[channel], kBeyondCounts));
            break;
          case BorderEntry::room:
            out[channel] = base - thresholds[channel];
            break;
        }
      }
    }
  }
  return table;
}

}  // namespace phonebit::engine::analysis
