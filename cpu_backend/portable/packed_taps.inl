// Windows over few channels as whole words. A pixel of 16 channels or fewer leaves half of its word empty or
// more, and a kernel that counts words pays for the empty bits. So the taps of a window are put together, as
// many as a word holds:
//   word j of a window = OR over slots i of tap (j * taps_per_word + i) << (i * in_c),
// taps in (ky, kx) order.
// A 3x3 window of 16 channels has 5 words instead of 9. Each output pixel gets its window, so what follows is
// a 1x1 convolution over the words; padding is written as bits, and limits come from the original shape, as
// for any other map (border_classes.inl).
//
// The words of a row lie in planes, [out_h][word][out_w], so that a tap is a run of pixels shifted left.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "padded_map.inl"

static inline int taps_per_word(const ConvShape& s) { return s.in_c <= 16 ? 32 / s.in_c : 1; }

/// Whether packing makes a window shorter.
static inline bool packs_taps(const ConvShape& s) {
  return taps_per_word(s) > 1 && s.kernel_h * s.kernel_w > 1;
}

static inline int packed_tap_words(const ConvShape& s) {
  return (s.kernel_h * s.kernel_w + taps_per_word(s) - 1) / taps_per_word(s);
}

/// The 1x1 convolution that is left.
static inline ConvShape packed_tap_shape(const ConvShape& s) {
  ConvShape one = s;
  one.in_h = s.out_h, one.in_w = s.out_w, one.in_c = 32 * packed_tap_words(s);
  one.kernel_h = one.kernel_w = one.stride_h = one.stride_w = one.dilation_h = one.dilation_w = 1;
  one.pad_top = one.pad_left = one.pad_bottom = one.pad_right = 0;
  return one;
}

static inline size_t packed_tap_bytes(const ConvShape& s) {
  return round_up_64(sizeof(uint32_t) * packed_tap_words(s) * s.out_h * s.out_w);
}

static inline WindowMap packed_tap_map(const ConvShape& s, const void* scratch) {
  const size_t row = s.out_w, row_words = packed_tap_words(s) * row;
  return {(const uint32_t*)scratch, row_words, 1, row};
}

/// Word `index` of a filter, given in the file's layout.
static inline uint32_t packed_tap_word(const ConvShape& s, const uint32_t* filter, int index) {
  const int taps = s.kernel_h * s.kernel_w, first = index * taps_per_word(s);
  uint32_t word = 0;
  for (int i = 0; i < taps_per_word(s) && first + i < taps; ++i) word |= filter[first + i] << (i * s.in_c);
  return word;
}

/// Tap (ky, kx) of all windows of output row y goes into their words; the first one of a word starts it.
template <bool kFirst>
static inline void pack_tap(const ConvShape& s, const uint32_t* input, int y, int ky, int kx, int shift,
                            uint32_t* out) {
  const auto put = [&](int x, auto tap) PHONEBIT_LAMBDA_INLINE {
    if constexpr (!kFirst) tap |= load<decltype(tap)>(out + x);
    store(out + x, tap);
  };
  const uint32_t padding = s.pad_value == 1 ? ((1u << s.in_c) - 1) << shift : 0;
  const int in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
  const int first = kx * s.dilation_w - s.pad_left;  // input column of output column 0
  // Output columns [begin, end) read the map.
  int begin = first < 0 ? (-first + s.stride_w - 1) / s.stride_w : 0;
  int end = first < s.in_w ? (s.in_w - 1 - first) / s.stride_w + 1 : 0;
  if (in_y < 0 || in_y >= s.in_h || begin > s.out_w) begin = s.out_w;
  if (end > s.out_w) end = s.out_w;
  for (int x = 0; x < begin; ++x) put(x, padding);
  const uint32_t* const row = input + (int64_t)in_y * s.in_w + first;
  if (s.stride_w == 1 && end - begin >= kLanes) {
    // The last vector overlaps the one before: putting a tap twice changes nothing.
    for (int x = begin; x < end; x += kLanes) {
      const int at = x + kLanes <= end ? x : end - kLanes;
      put(at, load<WordVector>(row + at) << shift);
    }
  } else {
    for (int x = begin; x < end; ++x) put(x, row[(int64_t)x * s.stride_w] << shift);
  }
  for (int x = begin > end ? begin : end; x < s.out_w; ++x) put(x, padding);
}

/// Output rows [row_begin, row_end) of the windows.
static inline void pack_taps(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin,
                             int row_end) {
  const size_t row_words = (size_t)packed_tap_words(s) * s.out_w;
  for (int y = row_begin; y < row_end; ++y) {
    uint32_t* word = (uint32_t*)scratch + y * row_words;
    int shift = 0;
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      for (int kx = 0; kx < s.kernel_w; ++kx, shift += s.in_c) {
        if (shift + s.in_c > 32) word += s.out_w, shift = 0;
        (shift == 0 ? pack_tap<true> : pack_tap<false>)(s, input, y, ky, kx, shift, word);
      }
    }
  }
}
