// Binary depthwise convolutions: one filter a channel.
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
  layer.append_sink(arguments);
  layer.launch(choice.kernel, choice, std::move(arguments));
  return layer.finish(choice.text());
}

const OpKernels kBinaryDepthwiseKernels = {&kBinaryDepthwiseFamily, build_depthwise};

}  // namespace

template <>
const OperatorKernels KernelsOf<OpKind::kBinaryDepthwiseConv2d>::all = {always<kBinaryDepthwiseKernels>,
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
