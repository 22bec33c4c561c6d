// Binary convolutions, depthwise ones and dense layers: what each of their kernels is given.
#include <algorithm>
#include <bitset>
#include <cstring>

#include "analysis/border_table.h"
#include "analysis/conv_shape.h"
#include "gpu/layer_parts.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

using analysis::BorderEntry;
using format::DataType;
using format::OpKind;
using loader::Op;
using Shape = TestShape;

size_t window_words(const cpu::ConvShape& shape) {
  return static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w) *
         static_cast<size_t>(cpu::words(shape.in_c));
}

/// The kernels' `@weights tiled`.
std::vector<uint32_t> tile_weights(const cpu::ConvShape& shape, const uint32_t* weights, int tile_filters,
                                   int vector_words) {
  const auto filters = static_cast<size_t>(tile_filters), vector = static_cast<size_t>(vector_words);
  const size_t tiles = (static_cast<size_t>(shape.out_c) + filters - 1) / filters;
  const size_t words = window_words(shape), vectors = words / vector;
  std::vector<uint32_t> tiled(tiles * words * filters, 0);
  for (size_t filter = 0; filter < static_cast<size_t>(shape.out_c); ++filter) {
    const uint32_t* from = weights + filter * words;
    uint32_t* const tile = tiled.data() + filter / filters * words * filters + filter % filters * vector;
    for (size_t v = 0; v < vectors; ++v) std::copy_n(from + v * vector, vector, tile + v * filters * vector);
  }
  return tiled;
}

/// The kernels' `@weights mma`: what the lanes of a warp load, step by step, as bconv2d_mma.cl deals words to
/// lanes and filters to columns.
std::vector<uint32_t> mma_weights(const cpu::ConvShape& shape, const uint32_t* weights, int tile_filters,
                                  int split) {
  const auto tile_width = static_cast<size_t>(tile_filters), ways = static_cast<size_t>(split);
  const size_t filters = static_cast<size_t>(shape.out_c), words = window_words(shape);
  const size_t tiles = (filters + tile_width - 1) / tile_width;
  const size_t chunks = (words + 8 * ways - 1) / (8 * ways) * ways;
  std::vector<uint32_t> dealt(tiles * chunks * tile_width * 8, 0);
  for (size_t filter = 0; filter < filters; ++filter) {
    const size_t quarter = filter % tile_width / (tile_width / 4), place = filter % (tile_width / 4);
    const size_t block = place / 2, column = 2 * quarter + place % 2;
    for (size_t word = 0; word < words; ++word) {
      const size_t chunk = filter / tile_width * chunks + word / 8, lane = 4 * column + word % 8 / 2;
      const size_t vector = (chunk * (tile_width / 16) + block / 2) * 32 + lane;
      dealt[4 * vector + 2 * (block % 2) + word % 2] = weights[filter * words + word];
    }
  }
  return dealt;
}

/// Appends values as whole words, the last one filled up with zeros.
template <class T>
void append(std::vector<uint32_t>& words, const std::vector<T>& values) {
  const size_t end = words.size(), bytes = values.size() * sizeof(T);
  words.resize(end + (bytes + 3) / 4, 0);
  std::memcpy(words.data() + end, values.data(), bytes);
}

/// The largest vector not above `wanted` words that divides a pixel.
int fitting_vector(const cpu::ConvShape& shape, int wanted) {
  while (cpu::words(shape.in_c) % wanted != 0) wanted /= 2;
  return wanted;
}

int count_ones(uint32_t word) { return static_cast<int>(std::bitset<32>(word).count()); }

class BinaryConvBuilder {
 public:
  BinaryConvBuilder(const BuildContext& build, const Op& op, const KernelChoice& choice)
      : build_(build),
        op_(op),
        choice_(choice),
        layer_(build, op),
        weights_(build.model.constant(op.record.weights).words()),
        thresholds_(analysis::integer_thresholds(build.model, op)),
        group_shape_(layer_.shape()),
        positive_(static_cast<size_t>(cpu::words(group_shape_.out_c)), ~0u) {
    group_shape_.in_c /= static_cast<int>(op.record.groups);
  }

  Layer build() {
    const std::string& kernel = choice_.kernel;
    if (kernel == "bconv2d_tiled" || kernel == "bconv2d_lanes") return launch(input(), tiled_weights());
    if (kHasTensorCores && kernel == "bconv2d_mma") return launch_mma();
    if (kernel == "bconv2d_accumulate") return launch_accumulate_and_pack();
    if (kernel == "bconv2d_image") {
      const cpu::ConvShape& shape = layer_.shape();
      const auto texels = static_cast<size_t>(cpu::words(shape.in_c) / 4);
      layer_.set_image(op_.operands[0], static_cast<size_t>(shape.in_w) * texels,
                       static_cast<size_t>(shape.in_h));
      return launch(Argument::image(),
                    layer_.upload_image(weights_, window_words(shape) / 4, static_cast<size_t>(shape.out_c)));
    }
    if (kernel == "bconv2d_byte") fit_granularity();
    if (is_karnaugh()) invert_filters();
    if (!layer_.sink().is_threshold) layer_.defines().set("COMPARE", 0);
    return launch(input(), canonical_weights());
  }

 private:
  Argument input() const { return input_of(op_); }

  Argument canonical_weights() {
    const size_t words = window_words(group_shape_) * static_cast<size_t>(group_shape_.out_c);
    return layer_.upload(weights_, words * sizeof(uint32_t), "weights");
  }

  Argument tiled_weights() {
    const int vector = fitting_vector(layer_.shape(), choice_.parameter("VECTOR_WORDS"));
    layer_.defines().set("VECTOR_WORDS", vector);
    return layer_.upload(tile_weights(layer_.shape(), weights_, choice_.parameter("TILE_FILTERS"), vector),
                         "weights");
  }

  /// As many bits a load as asked for, or as a pixel's words are a multiple of.
  void fit_granularity() {
    int bits = choice_.parameter("GRANULARITY");
    while (32 * cpu::words(layer_.shape().in_c) % bits != 0) bits /= 2;
    layer_.defines().set("GRANULARITY", bits);
  }

  BorderEntry entry() const {
    if (!layer_.sink().is_threshold) return BorderEntry::base;
    return is_karnaugh() ? BorderEntry::room : BorderEntry::limit;
  }

  std::vector<int32_t> table(BorderEntry entry) const {
    const int stride = 32 * cpu::words(group_shape_.out_c);
    return analysis::border_table(group_shape_, weights_, thresholds_.data(), entry, stride);
  }

  /// bconv2d_mma leaves the ones of a filter out of its counts: limits and bases are shifted.
  void shift_by_ones(std::vector<int32_t>& entries) const {
    const size_t words = window_words(group_shape_), filters = static_cast<size_t>(group_shape_.out_c);
    const size_t stride = 32 * static_cast<size_t>(cpu::words(group_shape_.out_c));
    for (size_t filter = 0; filter < filters; ++filter) {
      int32_t ones = 0;
      for (size_t i = 0; i < words; ++i) ones += count_ones(weights_[filter * words + i]);
      for (size_t at = filter; at < entries.size(); at += stride)
        entries[at] -= layer_.sink().is_threshold ? ones : 2 * ones;
    }
  }

  bool is_karnaugh() const {
    return choice_.kernel == "bconv2d_byte" && layer_.sink().is_threshold &&
           choice_.parameter("COMPARE") == 1;
  }

  /// Gives PhoneBit's eq. 9 filters of both signs of gamma. The converter has inverted those with gamma < 0 and
  /// the file does not keep which; here those with T < 0 are inverted: acc >= T <=> -acc <= -T, the same bit.
  void invert_filters() {
    const size_t words = window_words(group_shape_), filters = thresholds_.size();
    const auto pixel_words = static_cast<size_t>(cpu::words(group_shape_.in_c));
    const uint32_t last_word = ~0u >> (32 * cpu::words(group_shape_.in_c) - group_shape_.in_c);
    inverted_.assign(weights_, weights_ + words * filters);
    for (size_t filter = 0; filter < filters; ++filter) {
      if (thresholds_[filter] >= 0) continue;
      thresholds_[filter] = -thresholds_[filter];
      positive_[filter / 32] &= ~(1u << filter % 32);
      for (size_t i = 0; i < words; ++i)
        inverted_[filter * words + i] ^= (i + 1) % pixel_words == 0 ? last_word : ~0u;
    }
    weights_ = inverted_.data();
  }

  Layer launch(Argument image_or_tensor, Argument weights) {
    std::vector<Argument> arguments{image_or_tensor, weights, layer_.upload(table(entry()), "thresholds"),
                                    layer_.upload_borders(group_shape_)};
    if (choice_.kernel == "bconv2d_byte") arguments.push_back(layer_.upload(positive_, "gamma > 0"));
    return layer_.finish_with_sink(choice_, std::move(arguments));
  }

  Layer launch_mma() {
    std::vector<int32_t> entries = table(entry());
    shift_by_ones(entries);
    std::vector<uint32_t> constants =
        mma_weights(layer_.shape(), weights_, choice_.parameter("TILE_FILTERS"), choice_.parameter("SPLIT"));
    append(constants, entries);
    append(constants, border_numbers(group_shape_));
    return layer_.finish_with_sink(choice_, {input(), layer_.upload(constants, "weights")});
  }

  Layer launch_accumulate_and_pack() {
    const loader::Tensor& out = build_.model.output(op_);
    layer_.set_scratch(static_cast<size_t>(out.elements()) * sizeof(int32_t));
    layer_.defines().set("VECTOR_WORDS", fitting_vector(layer_.shape(), choice_.parameter("VECTOR_WORDS")));
    layer_.launch(choice_.kernel,
                  {input(), canonical_weights(), layer_.upload(table(BorderEntry::base), "thresholds"),
                   layer_.upload_borders(group_shape_), Argument::scratch()},
                  choice_);
    layer_.launch(kPackThresholds, {Argument::scratch(), layer_.upload(thresholds_, "thresholds"),
                                    Argument::of_tensor(op_.record.bits_output)});
    return layer_.finish(choice_);
  }

  const BuildContext& build_;
  const Op& op_;
  const KernelChoice& choice_;
  LayerBuilder layer_;
  const uint32_t* weights_;
  std::vector<int32_t> thresholds_;
  cpu::ConvShape group_shape_;      // in_c is that of one group
  std::vector<uint32_t> positive_;  // bits of the channels: gamma > 0
  std::vector<uint32_t> inverted_;  // weights, where filters are inverted
};

Layer build_conv(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  return BinaryConvBuilder(build, op, choice).build();
}

/// The weights as filters of one input channel, [channels][kernel_h][kernel_w], one word each: the layout of
/// border tables.
std::vector<uint32_t> single_channel_filters(const cpu::ConvShape& shape, const uint32_t* weights) {
  const auto taps = static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w);
  const auto channels = static_cast<size_t>(shape.out_c),
             words = static_cast<size_t>(cpu::words(shape.out_c));
  std::vector<uint32_t> filters(channels * taps);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t t = 0; t < taps; ++t) filters[c * taps + t] = weights[t * words + c / 32] >> (c % 32) & 1;
  }
  return filters;
}

Layer build_depthwise(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op);
  const loader::Constant& weights = build.model.constant(op.record.weights);
  cpu::ConvShape shape = layer.shape();
  const std::vector<uint32_t> filters = single_channel_filters(shape, weights.words());
  shape.in_c = 1;
  const std::vector<int32_t> thresholds = analysis::integer_thresholds(build.model, op);
  const BorderEntry entry = layer.sink().is_threshold ? BorderEntry::limit : BorderEntry::base;
  const int stride = 32 * cpu::words(shape.out_c);
  std::vector<Argument> arguments{
      input_of(op), layer.upload(weights.words(), weights.count * sizeof(uint32_t), "weights"),
      layer.upload(analysis::border_table(shape, filters.data(), thresholds.data(), entry, stride),
                   "thresholds"),
      layer.upload_borders(shape)};
  return layer.finish_with_sink(choice, std::move(arguments));
}

}  // namespace

template <>
const OperatorKernels KernelsOf<OpKind::kBinaryConv2d>::all = {
    always<kBinaryConvFamily, build_conv>,
    {{"binary_conv2d", DataType::kBit, {7, 9, 64}, {3, 3, 1, 1, 1, 0.0f}, 1, 40, Shape::kThresholds, 24},
     {"binary_conv2d", DataType::kBit, {9, 8, 128}, {3, 3, 2, 1, 1, 1.0f}, 1, 48, Shape::kEpilogue},
     {"binary_conv2d", DataType::kBit, {4, 5, 96}, {4, 5, 1, 1, 0, 0.0f}, 1, 75, Shape::kThresholds, 44},
     {"binary_conv2d", DataType::kBit, {5, 7, 256}, {1, 1, 1, 1, 0, 0.0f}, 1, 64, Shape::kEpilogue},
     {"binary_conv2d", DataType::kBit, {8, 8, 93}, {3, 3, 1, 2, 2, -1.0f}, 3, 33, Shape::kThresholds, 17}}};

template <>
const OperatorKernels KernelsOf<OpKind::kBinaryDepthwiseConv2d>::all = {
    always<kBinaryDepthwiseFamily, build_depthwise>,
    {{"binary_depthwise_conv2d",
      DataType::kBit,
      {7, 6, 70},
      {3, 3, 1, 1, 1, 0.0f},
      1,
      70,
      Shape::kThresholds,
      3},
     {"binary_depthwise_conv2d",
      DataType::kBit,
      {7, 6, 70},
      {3, 3, 1, 1, 1, 1.0f},
      1,
      70,
      Shape::kEpilogue}}};

}  // namespace phonebit::engine::gpu
