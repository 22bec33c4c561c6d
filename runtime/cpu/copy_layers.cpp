// Layers that move data: concatenation, padding, reshaping, selection of channels, resizing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/bit_copy.h"
#include "cpu/part_slots.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using format::OpKind;
using loader::Op;
using loader::Tensor;

/// body(row, begin, end) for the columns of each row that pixels [first, last) of a map have.
template <class Body>
void for_each_run(int first, int last, int width, const Body& body) {
  for (int pixel = first; pixel < last;) {
    const int row = pixel / width, column = pixel % width;
    const int end = std::min(width, column + last - pixel);
    body(row, column, end);
    pixel += end - column;
  }
}

class ConcatLayer final : public SplitLayer {
 public:
  ConcatLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : is_float_(context.model.operand(op).dtype == DataType::kF32), sources_(op.operands.size()) {
    kernel_ = is_float_ ? "concat_f32" : "concat_b32";
    for (size_t i = 0; i < sources_.size(); ++i) {
      sources_[i].channels = context.model.operand(op, i).channels;
      bind_operand(context, op, part, i, &sources_[i].data);
    }
    bind_output(context, op.any_output(), part, &output_);
    output_stride_ = stride_of(context.model.output(op).channels);
    split_pixels(context, op, part, copy_ns(2.0 * row_bytes_of(context, op, part)));
  }

  void run_range(int begin, int end, const Stop& /*stop*/) override {
    for (int pixel = begin; pixel < end; ++pixel) {
      uint32_t* const target = output_ + static_cast<size_t>(pixel) * output_stride_;
      int at = 0;
      for (const Source& source : sources_) {
        const uint32_t* from = source.data + static_cast<size_t>(pixel) * stride_of(source.channels);
        if (is_float_)
          std::memcpy(target + at, from, static_cast<size_t>(source.channels) * sizeof(float));
        else
          append_bits(target, at, from, source.channels);
        at += source.channels;
      }
    }
  }

 private:
  struct Source {
    const uint32_t* data = nullptr;  // packed bits, or floats
    int channels = 0;
  };

  size_t stride_of(int channels) const { return static_cast<size_t>(is_float_ ? channels : words(channels)); }

  bool is_float_;
  std::vector<Source> sources_;  // storage points into it: never resized
  uint32_t* output_ = nullptr;
  size_t output_stride_ = 0;
};

class PadLayer final : public SplitLayer {
 public:
  PadLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : in_(context.model.operand(op)),
        out_(context.model.output(op)),
        read_(analysis::part_read(context.model, op, 0, part)),
        first_row_(part.row_begin - static_cast<int>(op.record.pad_top)),
        left_(static_cast<int>(op.record.pad_left)),
        value_(op.record.pad_value) {
    kernel_ = "pad_f32";
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.value_output, part, &output_);
    split_pixels(context, op, part, copy_ns(2.0 * row_bytes_of(context, op, part)));
  }

  void run_range(int begin, int end, const Stop& /*stop*/) override {
    for_each_run(begin, end, out_.width, [&](int row, int first, int last) { fill_run(row, first, last); });
  }

 private:
  /// Columns [begin, end) of a row.
  void fill_run(int row, int begin, int end) {
    const auto channels = static_cast<size_t>(out_.channels);
    float* target =
        output_ +
        (static_cast<size_t>(row) * static_cast<size_t>(out_.width) + static_cast<size_t>(begin)) * channels;
    const auto fill = [&](int columns) {
      target = std::fill_n(target, static_cast<size_t>(columns) * channels, value_);
    };
    const int in_row = first_row_ + row;
    if (in_row < read_.row_begin || in_row >= read_.row_end) return fill(end - begin);
    const int first = std::clamp(left_, begin, end), last = std::clamp(left_ + in_.width, first, end);
    fill(first - begin);
    const size_t from = static_cast<size_t>(in_row - read_.row_begin) * static_cast<size_t>(in_.width) +
                        static_cast<size_t>(first - left_);
    const size_t floats = static_cast<size_t>(last - first) * channels;
    if (floats > 0) std::memcpy(target, input_ + from * channels, floats * sizeof(float));
    target += floats;
    fill(end - last);
  }

  const Tensor& in_;
  const Tensor& out_;
  OutputPart read_;
  int first_row_;  // of the input, under the part's first
  int left_;
  float value_;
  const float* input_ = nullptr;
  float* output_ = nullptr;
};

/// Copies only where operand and result could not share memory (both belong to the caller).
class ReshapeLayer final : public SplitLayer {
 public:
  ReshapeLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : pixel_bytes_(pixel_bytes(context.model.output(op))),
        is_shared_(context.slots.is_shared(op.operands[0], op.record.value_output)) {
    kernel_ = is_shared_ ? "none" : "copy";
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.value_output, part, &output_);
    split_pixels(context, op, part, copy_ns(2.0 * row_bytes_of(context, op, part)));
  }

  int parts(int phase) const override { return is_shared_ ? 0 : SplitLayer::parts(phase); }
  void run_range(int begin, int end, const Stop& /*stop*/) override {
    const size_t at = static_cast<size_t>(begin) * pixel_bytes_;
    std::memcpy(output_ + at, input_ + at, static_cast<size_t>(end) * pixel_bytes_ - at);
  }

 private:
  size_t pixel_bytes_;
  bool is_shared_;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

/// to[i] = from[indices[i]]. Four at a time: stores of single floats would take twice as long.
void gather(const float* from, const int32_t* indices, int count, float* to) {
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    const float four[4] = {from[indices[i]], from[indices[i + 1]], from[indices[i + 2]],
                           from[indices[i + 3]]};
    std::memcpy(to + i, four, sizeof four);
  }
  for (; i < count; ++i) to[i] = from[indices[i]];
}

/// Slices and splits are a few runs of neighbours, copied as such; shuffles are gathered.
class SelectChannelsLayer final : public SplitLayer {
 public:
  SelectChannelsLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : indices_(context.model.constant(op.record.weights).i32()),
        in_channels_(context.model.operand(op).channels),
        out_channels_(context.model.output(op).channels) {
    kernel_ = "select_channels_f32";
    for (int c = 0; c < out_channels_;) c += add_run(c);
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.value_output, part, &output_);
    split_pixels(context, op, part,
                 copy_ns(2.0 * row_bytes_of(context, op, part)) +
                     pixels_of(context, op, part) * static_cast<double>(pieces_.size()));
  }

  void run_range(int begin, int end, const Stop& /*stop*/) override {
    for (int pixel = begin; pixel < end; ++pixel) {
      const float* const from = input_ + static_cast<size_t>(pixel) * static_cast<size_t>(in_channels_);
      float* const to = output_ + static_cast<size_t>(pixel) * static_cast<size_t>(out_channels_);
      for (const Piece& piece : pieces_) {
        if (piece.content == Content::zeros)
          std::fill_n(to + piece.begin, piece.channels, 0.0f);
        else if (piece.content == Content::neighbours)
          std::copy_n(from + indices_[piece.begin], piece.channels, to + piece.begin);
        else
          gather(from, indices_ + piece.begin, piece.channels, to + piece.begin);
      }
    }
  }

 private:
  enum class Content { zeros, neighbours, scattered };
  struct Piece {
    Content content;
    int begin;  // output channel
    int channels;
  };
  /// Copying a run of at least so many channels is faster than gathering it.
  static constexpr int kCopiedRun = 8;

  /// Adds the zeros, or the channels that are neighbours in the input, from output channel `begin` on.
  /// Returns their number.
  int add_run(int begin) {
    const bool is_zero = indices_[begin] < 0;
    int channels = 1;
    while (begin + channels < out_channels_ &&
           indices_[begin + channels] == indices_[begin] + (is_zero ? 0 : channels))
      ++channels;
    const Content content = is_zero                  ? Content::zeros
                            : channels >= kCopiedRun ? Content::neighbours
                                                     : Content::scattered;
    if (content == Content::scattered && !pieces_.empty() && pieces_.back().content == content)
      pieces_.back().channels += channels;
    else
      pieces_.push_back({content, begin, channels});
    return channels;
  }

  const int32_t* indices_;
  int in_channels_, out_channels_;
  std::vector<Piece> pieces_;
  const float* input_ = nullptr;
  float* output_ = nullptr;
};

/// Where a place of an axis that is resized lies in the old one. Each operation is rounded once, as on a
/// device.
float old_place(int place, int in, int out, bool is_at_corners) {
  const auto extent = static_cast<float>(is_at_corners ? in - 1 : in);
  const auto places = static_cast<float>(is_at_corners ? std::max(out - 1, 1) : out);
  const float scale = extent / places, at = static_cast<float>(place);
  return is_at_corners ? at * scale : (at + 0.5f) * scale - 0.5f;
}

/// Two neighbours of an axis and the share of the second.
struct LinearTaps {
  static constexpr int kCount = 2;
  int low, high;
  float share;

  static LinearTaps at(float place, int in) {
    const float inside = std::max(place, 0.0f);
    const int low = std::min(static_cast<int>(inside), in - 1);
    return {low, std::min(low + 1, in - 1), inside - static_cast<float>(low)};
  }
  template <class Value>
  float mean(const Value& value) const {
    const float first = value(low);
    return first + (value(high) - first) * share;
  }
};

/// Four neighbours of an axis and their weights, by Keys' cubic of a = -0.75.
struct CubicTaps {
  static constexpr int kCount = 4;
  int from[4];
  float weight[4];

  static CubicTaps at(float place, int in) {
    const float floor = std::floor(place), share = place - floor, rest = 1.0f - share;
    CubicTaps taps = {
        {}, {far_weight(share + 1.0f), near_weight(share), near_weight(rest), far_weight(rest + 1.0f)}};
    for (int i = 0; i < 4; ++i) taps.from[i] = std::clamp(static_cast<int>(floor) + i - 1, 0, in - 1);
    return taps;
  }
  /// A function of its own: sixteen taps side by side are a lot of code for a phone's library.
  template <class Value>
  [[gnu::noinline]] float mean(const Value& value) const {
    float total = value(from[0]) * weight[0];
    for (int i = 1; i < 4; ++i) total += value(from[i]) * weight[i];
    return total;
  }

 private:
  static float near_weight(float x) { return (1.25f * x - 2.25f) * x * x + 1.0f; }
  static float far_weight(float x) { return ((-0.75f * x + 3.75f) * x - 6.0f) * x + 3.0f; }
};

class ResizeLayer : public SplitLayer {
 public:
  ResizeLayer(const BuildContext& context, const Op& op, const OutputPart& part, int taps)
      : in_(context.model.operand(op)), out_(context.model.output(op)), first_row_(part.row_begin) {
    kernel_ = op.traits().name + std::string("_f32");
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.value_output, part, &output_);
    split_pixels(context, op, part, copy_ns((taps + 1) * row_bytes_of(context, op, part)));
  }

 protected:
  const Tensor& in_;
  const Tensor& out_;
  int first_row_;
  const float* input_ = nullptr;
  float* output_ = nullptr;
};

/// Interpolation: columns first, then rows.
template <class Taps>
class ResizeByTaps final : public ResizeLayer {
 public:
  ResizeByTaps(const BuildContext& context, const Op& op, const OutputPart& part)
      : ResizeLayer(context, op, part, Taps::kCount * Taps::kCount),
        row_taps_(taps_of(op, in_.height, out_.height)),
        column_taps_(taps_of(op, in_.width, out_.width)) {}

  void run_range(int begin, int end, const Stop& /*stop*/) override {
    for_each_run(begin, end, out_.width, [&](int row, int first, int last) { resize_run(row, first, last); });
  }

 private:
  static std::vector<Taps> taps_of(const Op& op, int in, int out) {
    const bool is_at_corners =
        op.kind == OpKind::kResizeBilinearCorners || op.kind == OpKind::kResizeBicubicCorners;
    std::vector<Taps> taps;
    for (int i = 0; i < out; ++i) taps.push_back(Taps::at(old_place(i, in, out, is_at_corners), in));
    return taps;
  }

  /// Columns [begin, end) of a row.
  void resize_run(int row, int begin, int end) {
    const auto channels = static_cast<size_t>(out_.channels);
    const size_t row_floats = static_cast<size_t>(in_.width) * channels;
    const Taps& y = row_taps_[static_cast<size_t>(first_row_ + row)];
    float* to =
        output_ +
        (static_cast<size_t>(row) * static_cast<size_t>(out_.width) + static_cast<size_t>(begin)) * channels;
    for (int column = begin; column < end; ++column, to += channels) {
      const Taps& x = column_taps_[static_cast<size_t>(column)];
      for (size_t c = 0; c < channels; ++c) {
        to[c] = y.mean([&](int from_row) {
          const float* const line = input_ + static_cast<size_t>(from_row) * row_floats + c;
          return x.mean([&](int from) { return line[static_cast<size_t>(from) * channels]; });
        });
      }
    }
  }

  std::vector<Taps> row_taps_, column_taps_;
};

}  // namespace

PHONEBIT_LAYERS(kConcat, make_one<ConcatLayer>)
PHONEBIT_LAYERS(kPad, make_one<PadLayer>)
PHONEBIT_LAYERS(kReshape, make_one<ReshapeLayer>)
PHONEBIT_LAYERS(kSelectChannels, make_one<SelectChannelsLayer>)
PHONEBIT_LAYERS(kResizeBilinear, make_one<ResizeByTaps<LinearTaps>>)
PHONEBIT_LAYERS(kResizeBilinearCorners, make_one<ResizeByTaps<LinearTaps>>)
PHONEBIT_LAYERS(kResizeBicubic, make_one<ResizeByTaps<CubicTaps>>)
PHONEBIT_LAYERS(kResizeBicubicCorners, make_one<ResizeByTaps<CubicTaps>>)

}  // namespace phonebit::engine::cpu
