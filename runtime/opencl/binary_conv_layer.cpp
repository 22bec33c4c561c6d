// Binary convolutions and dense layers: which kernels can serve one, and what each of them is given.
#include <algorithm>

#include "fail.h"
#include "lowering/border_table.h"
#include "lowering/conv_shape.h"
#include "opencl/layer_parts.h"

namespace phonebit::opencl {
namespace {

using loader::Op;
using lowering::BorderEntry;

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

/// The largest vector not above `wanted` words that divides a pixel.
int fitting_vector(const cpu::ConvShape& shape, int wanted) {
  while (cpu::words(shape.in_c) % wanted != 0) wanted /= 2;
  return wanted;
}

class BinaryConvBuilder {
 public:
  BinaryConvBuilder(const BuildContext& build, const Op& op, const KernelChoice& choice)
      : build_(build),
        op_(op),
        choice_(choice),
        layer_(build, op),
        weights_(build.model.constant(op.record.weights).words()),
        thresholds_(lowering::integer_thresholds(build.model, op)),
        group_shape_(layer_.shape()) {
    group_shape_.in_c /= static_cast<int>(op.record.groups);
  }

  Layer build() {
    const std::string& kernel = choice_.kernel;
    if (kernel == "bconv2d_tiled") {
      launch(input(), tiled_weights());
    } else if (kernel == "bconv2d_image") {
      const cpu::ConvShape& shape = layer_.shape();
      const auto texels = static_cast<size_t>(cpu::words(shape.in_c) / 4);
      layer_.set_image(op_.operands[0], static_cast<size_t>(shape.in_w) * texels,
                       static_cast<size_t>(shape.in_h));
      launch(Argument::image(),
             layer_.upload_image(weights_, window_words(shape) / 4, static_cast<size_t>(shape.out_c)));
    } else if (kernel == "bconv2d_accumulate") {
      launch_accumulate_and_pack();
    } else {
      if (kernel == "bconv2d_byte") fit_granularity();
      if (!layer_.sink().is_threshold) layer_.defines().set("COMPARE", 0);
      launch(input(), canonical_weights());
    }
    return layer_.finish(choice_.text());
  }

 private:
  Argument input() const { return Argument::of_tensor(op_.operands[0]); }

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

  Argument table(BorderEntry entry) {
    const int stride = 32 * cpu::words(group_shape_.out_c);
    return layer_.upload(lowering::border_table(group_shape_, weights_, thresholds_.data(), entry, stride),
                         "thresholds");
  }

  /// The converter has inverted the filters of channels with gamma < 0, so all of them count as gamma > 0.
  Argument positive_channels() {
    return layer_.upload(std::vector<uint32_t>(static_cast<size_t>(cpu::words(group_shape_.out_c)), ~0u),
                         "signs of gamma");
  }

  void launch(Argument image_or_tensor, Argument weights) {
    const bool is_threshold = layer_.sink().is_threshold;
    const bool is_byte = choice_.kernel == "bconv2d_byte";
    const bool is_karnaugh = is_byte && is_threshold && choice_.parameter("COMPARE") == 1;
    const BorderEntry entry = !is_threshold ? BorderEntry::base
                              : is_karnaugh ? BorderEntry::room
                                            : BorderEntry::limit;
    std::vector<Argument> arguments{image_or_tensor, weights, table(entry),
                                    layer_.upload_borders(group_shape_)};
    if (is_byte) arguments.push_back(positive_channels());
    layer_.append_sink(arguments);
    layer_.launch(choice_.kernel, choice_, std::move(arguments));
  }

  void launch_accumulate_and_pack() {
    const loader::Tensor& out = build_.model.output(op_);
    layer_.set_scratch(static_cast<size_t>(out.elements()) * sizeof(int32_t));
    layer_.defines().set("VECTOR_WORDS", fitting_vector(layer_.shape(), choice_.parameter("VECTOR_WORDS")));
    layer_.launch(choice_.kernel, choice_,
                  {input(), canonical_weights(), table(BorderEntry::base),
                   layer_.upload_borders(group_shape_), Argument::scratch()});
    layer_.launch("pack_thresholds", {Argument::scratch(), layer_.upload(thresholds_, "thresholds"),
                                      Argument::of_tensor(op_.record.bits_output)});
  }

  const BuildContext& build_;
  const Op& op_;
  const KernelChoice& choice_;
  LayerBuilder layer_;
  const uint32_t* weights_;
  std::vector<int32_t> thresholds_;
  cpu::ConvShape group_shape_;  // in_c is that of one group
};

bool serves(const loader::Model& model, const Op& op, const Target& target, const KernelChoice& choice) {
  const cpu::ConvShape shape = lowering::conv_shape(model, op);
  const std::string& kernel = choice.kernel;
  if (kernel == "bconv2d_grouped") return true;
  if (op.record.groups != 1) return false;
  const int64_t window = int64_t{shape.kernel_h} * shape.kernel_w * shape.in_c;
  const bool is_tile = kernel == "bconv2d_tiled" || kernel == "bconv2d_image";
  if (is_tile && choice.parameter("ACCUMULATOR") == 1 && window >= 65536) return false;
  if (kernel == "bconv2d_image") {
    const auto texels = static_cast<size_t>(cpu::words(shape.in_c) / 4);
    const Device& device = target.device;
    return device.has_images && cpu::words(shape.in_c) % 4 == 0 &&
           static_cast<size_t>(shape.in_w) * texels <= device.image2d_max_width &&
           static_cast<size_t>(shape.in_h) <= device.image2d_max_height &&
           window_words(shape) / 4 <= device.image2d_max_width &&
           static_cast<size_t>(shape.out_c) <= device.image2d_max_height;
  }
  if (kernel == "bconv2d_accumulate") return op.threshold_kind() == format::ThresholdKind::kI32;
  if (kernel == "bgemv")
    return shape.out_h * shape.out_w == 1 && shape.kernel_h == shape.in_h && shape.kernel_w == shape.in_w &&
           shape.dilation_h == 1 && shape.dilation_w == 1 && !lowering::reaches_padding(shape);
  return true;
}

Layer build(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  return BinaryConvBuilder(build, op, choice).build();
}

}  // namespace

const OpKernels kBinaryConvKernels = {
    "binary_conv2d",
    {"bconv2d_tiled", "bconv2d_image", "bgemv", "bconv2d_split", "bconv2d_byte", "bconv2d_accumulate",
     "bconv2d_grouped"},
    serves,
    build,
};

}  // namespace phonebit::opencl
