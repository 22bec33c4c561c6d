// Walking over an output range in tiles of pixels, for the kernels that count different bits.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "popcount_layout.inl"

/// A tile of kPixels output pixels. At the end of a range the last pixel is repeated: the tile then computes
/// it several times and writes it once, which costs the same as overlapping tiles and never runs an epilogue
/// twice.
template <int kPixels>
struct PixelTile {
  const uint32_t* windows[kPixels];
  int borders[kPixels];  // their classes
  bool borders_alike;    // and no pixel is repeated
  int first, count;
};

class PixelWalk {
 public:
  PixelWalk(const ConvShape& shape, const WindowMap& map, const BorderTable& borders, int pixel_begin,
            int pixel_end)
      : shape_(shape),
        map_(map),
        borders_(borders),
        pixel_(pixel_begin),
        end_(pixel_end),
        y_(pixel_begin / shape.out_w),
        x_(pixel_begin % shape.out_w) {}

  /// Tiles that next() returns from here on.
  template <int kPixels>
  int tiles() const {
    return (end_ - pixel_ + kPixels - 1) / kPixels;
  }

  template <int kPixels>
  bool next(PixelTile<kPixels>& tile) {
    if (pixel_ >= end_) return false;
    tile.first = pixel_;
    if (end_ - pixel_ >= kPixels && shape_.out_w - x_ >= kPixels) {
      next_of_row(tile);
      return true;
    }
    tile.count = end_ - pixel_ < kPixels ? end_ - pixel_ : kPixels;
    tile.borders_alike = false;
    for (int i = 0; i < kPixels; ++i) {
      tile.windows[i] = map_.words + (size_t)y_ * shape_.stride_h * map_.row_stride +
                        (size_t)x_ * shape_.stride_w * map_.pixel_stride;
      tile.borders[i] = borders_.count() == 1 ? 0 : borders_.class_of(shape_, y_, x_);
      if (pixel_ + 1 >= end_) continue;
      ++pixel_;
      if (++x_ == shape_.out_w) {
        x_ = 0;
        ++y_;
      }
    }
    if (tile.first + tile.count == end_) pixel_ = end_;
    return true;
  }

 private:
  /// kPixels pixels of one row.
  template <int kPixels>
  PHONEBIT_INLINE void next_of_row(PixelTile<kPixels>& tile) {
    const size_t step = shape_.stride_w * map_.pixel_stride;
    const uint32_t* window = map_.words + (size_t)y_ * shape_.stride_h * map_.row_stride + (size_t)x_ * step;
    unroll<kPixels>([&](int i) PHONEBIT_LAMBDA_INLINE {
      tile.windows[i] = window;
      window += step;
      PHONEBIT_SCALAR(window);
    });
    const int row_class = borders_.rows()[y_] * borders_.column_count;
    const int* const column_classes = borders_.columns(shape_) + x_;
    tile.count = kPixels;
    tile.borders_alike = column_classes[0] == column_classes[kPixels - 1];
    for (int i = 0; i < kPixels; ++i) tile.borders[i] = row_class + column_classes[i];
    pixel_ += kPixels;
    x_ += kPixels;
    if (x_ == shape_.out_w) {
      x_ = 0;
      ++y_;
    }
  }

  const ConvShape& shape_;
  const WindowMap& map_;
  const BorderTable& borders_;
  int pixel_, end_, y_, x_;
};

/// The next block's weights, asked for in equal shares while the tiles of this block are computed. A
/// network's weights are more than the second cache holds, so each block's come from beyond it once an image,
/// and its first tile would wait for them.
class WeightsAhead {
 public:
  /// The block after `weights`, unless `is_last`. A range of few tiles asks for nothing: many lines at once
  /// delay the loads after them, and a part of the block gains nothing.
  WeightsAhead(const void* weights, size_t block_bytes, bool is_last, int tiles)
      : next_((const char*)weights + block_bytes), share_(0) {
    if (is_last || tiles == 0) return;
    const size_t share = block_bytes / tiles / 64 * 64 + 64;
    if (share <= kMaxLines * 64) share_ = share;
  }

  PHONEBIT_INLINE void ask() {
    for (size_t i = 0; i < share_; i += 64) _mm_prefetch(next_ + i, _MM_HINT_T1);
    next_ += share_;
  }

 private:
  static constexpr size_t kMaxLines = 72;  // measured: 66 gain (13x13, 1024 channels), 119 lose (7x7, 512)

  const char* next_;
  size_t share_;
};

/// Counts of a tile for kVectors * 16 channels from `lane` of the block on: packed bits at once, or float32
/// accumulators into `values` for an epilogue that runs when the block's channels are complete. `high_head`: the
/// block's of a second plane, or null.
template <int kPixels, int kVectors>
PHONEBIT_INLINE void finish_tile(const ConvShape& s, const PixelTile<kPixels>& tile,
                                 const __m512i (&counts)[kPixels][kVectors], const uint32_t* block_head,
                                 int block, int lane, const AccumulatorSink& sink,
                                 float (&values)[kPixels][kChannelBlock],
                                 const uint32_t* high_head = nullptr) {
  const uint32_t* const head = block_head + lane;
  if (sink.threshold_bits == nullptr) {
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      const int at = tile.borders[p] * kChannelBlock;
      store_values(counts[p], head + at, values[p] + lane,
                   high_head == nullptr ? nullptr : high_head + lane + at);
    });
    return;
  }
  const size_t step = sink.pixel_words;
  uint32_t* out = sink.threshold_bits + tile.first * step + (block * kChannelBlock + lane) / 32;
  const int words_out = words(block_channels(s, block) - lane);
  if (tile.borders_alike && kVectors <= 2 * words_out) {  // most tiles: nothing to decide about a pixel
    const uint32_t* const limits = head + tile.borders[0] * kChannelBlock;
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      store_bits(counts[p], limits, out, (kVectors + 1) / 2);
      out += step;
    });
    return;
  }
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    if (p >= tile.count) return;
    store_bits(counts[p], head + tile.borders[p] * kChannelBlock, out + p * step, words_out);
  });
}
