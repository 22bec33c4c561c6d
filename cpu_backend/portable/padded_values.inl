// The map that convolutions of float32 and u8 values read: the input itself, or a copy in scratch with
// zeros around it.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

#include "border_classes.inl"

/// Elements from one row, and from one pixel, to the next; tap (0, 0) of output (y, x) is pixel
/// (y * stride_h, x * stride_w).
template <class Value>
struct ValueMap {
  const Value* pixels;
  size_t row_stride, pixel_stride;
};

/// Rows and columns that windows touch.
static inline int map_rows(const ConvShape& s) {
  return (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
}

static inline int map_columns(const ConvShape& s) {
  return (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}

/// The windows of pixels in row-major order.
template <class Value>
class WindowWalk {
 public:
  /// `first`: the window of pixel 0.
  WindowWalk(const ConvShape& s, const Value* first, size_t row_stride, size_t pixel_stride, int pixel)
      : row_step_(s.stride_h * row_stride),
        pixel_step_(s.stride_w * pixel_stride),
        columns_(s.out_w),
        left_(s.out_w - pixel % s.out_w),
        row_(first + pixel / s.out_w * row_step_),
        next_(row_ + pixel % s.out_w * pixel_step_) {}

  const Value* next() {
    const Value* const window = next_;
    next_ += pixel_step_;
    if (--left_ == 0) left_ = columns_, next_ = row_ += row_step_;
    return window;
  }

 private:
  size_t row_step_, pixel_step_;
  int columns_, left_;
  const Value *row_, *next_;
};

static inline int value_padded_rows(const ConvShape& s) { return reaches_padding(s) ? map_rows(s) : 0; }

template <class Value>
static inline size_t value_padded_bytes(const ConvShape& s) {
  return reaches_padding(s) ? (size_t)map_rows(s) * map_columns(s) * s.in_c * sizeof(Value) : 0;
}

template <class Value>
static inline ValueMap<Value> value_map(const ConvShape& s, const Value* input, const void* scratch) {
  const size_t channels = s.in_c;
  if (!reaches_padding(s)) return {input, s.in_w * channels, channels};
  return {(const Value*)scratch, map_columns(s) * channels, channels};
}

/// Copies rows [row_begin, row_end) of the padded map.
template <class Value>
static inline void pad_values(const ConvShape& s, const Value* input, void* scratch, int row_begin,
                              int row_end) {
  const int width = map_columns(s);
  const int left = s.pad_left < width ? s.pad_left : width;
  const int inside = width - left < s.in_w ? width - left : s.in_w;
  const size_t pixel_bytes = s.in_c * sizeof(Value);
  for (int y = row_begin; y < row_end; y++) {
    char* row = (char*)scratch + y * width * pixel_bytes;
    const int in_y = y - s.pad_top;
    if (in_y < 0 || in_y >= s.in_h) {
      __builtin_memset(row, 0, width * pixel_bytes);
      continue;
    }
    char* right = row + (left + inside) * pixel_bytes;
    __builtin_memset(row, 0, left * pixel_bytes);
    __builtin_memcpy(row + left * pixel_bytes, (const char*)input + in_y * s.in_w * pixel_bytes,
                     inside * pixel_bytes);
    __builtin_memset(right, 0, (width - left - inside) * pixel_bytes);
  }
}
