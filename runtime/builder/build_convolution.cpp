// Convolutions and what follows them: the part of NetworkBuilder that fuses layers.
#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <limits>

#include "builder/network_builder.h"
#include "loader/loader.h"
#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

using format::DataType;
using format::kNone;
using format::OpKind;
using format::StepKind;
using format::StepRecord;
using format::ThresholdKind;
using loader::Limits;

StepRecord step_of(StepKind kind) {
  StepRecord step{};
  step.kind = static_cast<uint32_t>(kind);
  step.tensor = step.constant_a = step.constant_b = kNone;
  return step;
}

StepRecord clamp(float low, float high) {
  StepRecord step = step_of(StepKind::kClamp);
  step.value_a = low;
  step.value_b = high;
  return step;
}

bool has_padding(const Window& window) {
  return window.pad_top != 0 || window.pad_left != 0 || window.pad_bottom != 0 || window.pad_right != 0;
}

/// Of the values that a u8 level becomes, the largest.
int64_t largest_level(const Convolution& layer) {
  const int64_t at_0 = layer.input_add, at_255 = int64_t{255} * layer.input_mul + layer.input_add;
  return std::max(std::llabs(at_0), std::llabs(at_255));
}

/// The accumulators of an integer convolution: taps of -1/+1 sum to an even number less than all, unless some
/// count as 0.
Reach reach_of(const Convolution& layer, ElementType input, const FilterShape& filters) {
  const auto taps = static_cast<int64_t>(filters.taps * filters.channels);
  if (input == ElementType::u8) return {-taps * largest_level(layer), taps * largest_level(layer), 1};
  return {-taps, taps, has_padding(layer.window) && layer.pad_value == 0 ? 1 : 2};
}

void check_operand(const TensorInfo& in, const Convolution& layer, const std::string& where) {
  if (!layer.weights.is_binary && in.dtype != ElementType::f32)
    fail(ErrorCode::input,
         "%s: tensor '%s' is %s, which meets signs only; set is_binary, or make values by a pointwise layer",
         where.c_str(), in.name.c_str(), in.dtype == ElementType::u8 ? "u8" : "bits");
  const bool is_bit = in.dtype == ElementType::bit;
  if (layer.pad_value < -1 || layer.pad_value > 1 || (layer.pad_value != 0 && !is_bit))
    fail(ErrorCode::input, "%s: pad_value is %d, expected %s", where.c_str(), layer.pad_value,
         is_bit ? "-1, 0 or 1" : "0, because the input is not of bits");
  if (in.dtype != ElementType::u8 && (layer.input_mul != 1 || layer.input_add != 0))
    fail(ErrorCode::input, "%s: input_mul and input_add are for u8 inputs, tensor '%s' is not one",
         where.c_str(), in.name.c_str());
}

}  // namespace

NetworkBuilder::ConvShape NetworkBuilder::conv_shape(const TensorInfo& in, const Convolution& layer,
                                                     const std::string& where) const {
  check_operand(in, layer, where);
  const int64_t out_channels = layer.out_channels, groups = layer.groups;
  if (out_channels < 1 || out_channels > Limits::kExtent)
    fail(ErrorCode::input, "%s: out_channels is %" PRId64 ", expected 1 to %" PRIu32, where.c_str(),
         out_channels, Limits::kExtent);
  if (groups < 1 || in.channels % groups != 0 || out_channels % groups != 0)
    fail(ErrorCode::input, "%s: groups=%" PRId64 " does not divide %d input and %" PRId64 " output channels",
         where.c_str(), groups, in.channels, out_channels);
  const MapSize size = output_size(layer.window, {in.height, in.width}, false, where);
  const int64_t taps = int64_t{layer.window.kernel_height} * layer.window.kernel_width;
  const int64_t window = taps * (in.channels / groups);
  if (window > std::min(Limits::kWindow, Limits::kElements / out_channels))
    fail(ErrorCode::input, "%s: %" PRId64 " weights a channel are beyond this engine's limit", where.c_str(),
         window);
  if (in.dtype == ElementType::u8 && largest_level(layer) > (Limits::kAccumulator - 1) / window)
    fail(ErrorCode::input,
         "%s: input_mul %d and input_add %d over %" PRId64 " weights exceed 32-bit accumulators",
         where.c_str(), layer.input_mul, layer.input_add, window);
  const FilterShape filters{static_cast<size_t>(out_channels), static_cast<size_t>(taps),
                            static_cast<size_t>(in.channels / groups)};
  check_weights(layer.weights, filters, where);
  const bool is_depthwise = in.dtype == ElementType::bit && groups == in.channels && groups == out_channels;
  return {filters, size, is_depthwise};
}

int NetworkBuilder::convolution(int input, const Convolution& layer) {
  const TensorInfo in = tensor(input);
  TensorInfo out = in;
  out.name = layer_name(layer.name, "conv2d");
  const std::string where = "layer '" + out.name + "'";
  const ConvShape shape = conv_shape(in, layer, where);
  out.height = shape.size.height;
  out.width = shape.size.width;
  out.channels = layer.out_channels;
  out.dtype = layer.epilogue.output == OutputKind::signs ? ElementType::bit : ElementType::f32;
  check_tensor(out);

  const bool is_integer = in.dtype != ElementType::f32;
  const Reach reach = is_integer ? reach_of(layer, in.dtype, shape.filters) : Reach{};
  const Finish end = finish(layer.epilogue, out, is_integer ? &reach : nullptr, where);
  const OpKind kind = shape.is_depthwise             ? OpKind::kBinaryDepthwiseConv2d
                      : in.dtype == ElementType::bit ? OpKind::kBinaryConv2d
                                                     : OpKind::kConv2d;
  format::OpRecord op = op_of(kind, layer.window);
  op.pad_value = static_cast<float>(layer.pad_value);
  op.groups = shape.is_depthwise ? 1 : static_cast<uint32_t>(layer.groups);
  op.input_mul = layer.input_mul;
  op.input_add = layer.input_add;
  set_conv_weights(op, layer, shape, end.integers.negated);
  return add_op(op, input, out, end);
}

int NetworkBuilder::dense(int input, Convolution layer) {
  const TensorInfo& in = tensor(input);
  layer.name = layer_name(layer.name, "dense");
  layer.window = Window{};
  layer.window.kernel_height = in.height;
  layer.window.kernel_width = in.width;
  layer.groups = 1;
  return convolution(input, layer);
}

void NetworkBuilder::set_conv_weights(format::OpRecord& op, const Convolution& layer, const ConvShape& shape,
                                      const std::vector<bool>& negated) {
  const Weights& weights = layer.weights;
  if (!weights.is_binary)
    op.weights = writer_.constant(DataType::kF32, weights.values.data, weights.values.count);
  else if (shape.is_depthwise)
    op.weights = writer_.constant(DataType::kBit, pack_depthwise(weights, shape.filters, negated));
  else
    op.weights = writer_.constant(DataType::kBit, pack_filters(weights, shape.filters, negated));
}

NetworkBuilder::Finish NetworkBuilder::finish(const Epilogue& epilogue, const TensorInfo& out,
                                              const Reach* reach, const std::string& where) {
  check_added(epilogue, out, where);
  const bool is_signs = epilogue.output == OutputKind::signs;
  if (is_signs && epilogue.activation != Activation::none)
    fail(ErrorCode::input, "%s: an activation in front of the sign; expected none", where.c_str());
  if (epilogue.slopes.is_given() != (epilogue.activation == Activation::prelu))
    fail(ErrorCode::input, "%s: slopes belong to the activation prelu, and it needs them", where.c_str());
  const auto channels = static_cast<size_t>(out.channels);
  const ChannelChain chain(epilogue, channels, where);
  const std::vector<float> slopes = one_a_channel(epilogue.slopes, channels, 0.0f, "slopes", where);
  Finish end;
  if (is_signs && epilogue.added == 0 && reach != nullptr) {
    end.integers = integer_thresholds(chain, *reach, where);
    end.kind = ThresholdKind::kI32;
    return end;
  }
  if (is_signs) end.kind = ThresholdKind::kF32;
  if (is_signs && epilogue.added == 0) {
    const Thresholds<float> found = float_thresholds(chain);
    if (std::any_of(found.threshold.begin(), found.threshold.end(), [](float t) { return t != 0.0f; }))
      end.threshold = found.threshold;
    if (std::find(found.negated.begin(), found.negated.end(), true) != found.negated.end()) {
      ScaleBias flip{std::vector<float>(channels, 1.0f), std::vector<float>(channels, 0.0f)};
      for (size_t c = 0; c < channels; ++c)
        if (found.negated[c]) flip.scale[c] = -1.0f;
      add_scale_bias(end.steps, flip);
    }
    return end;
  }
  const ScaleBias scale_bias = chain.merged();
  if (!scale_bias.scale.empty()) add_scale_bias(end.steps, scale_bias);
  if (epilogue.added != 0) {
    StepRecord add = step_of(StepKind::kAdd);
    add.tensor = epilogue.added - 1;
    end.steps.push_back(add);
  }
  add_activation(end.steps, epilogue.activation, slopes);
  return end;
}

void NetworkBuilder::add_scale_bias(std::vector<StepRecord>& steps, const ScaleBias& step) {
  StepRecord record = step_of(StepKind::kScaleBias);
  record.constant_a = writer_.constant(DataType::kF32, step.scale);
  record.constant_b = writer_.constant(DataType::kF32, step.bias);
  steps.push_back(record);
}

void NetworkBuilder::add_activation(std::vector<StepRecord>& steps, Activation activation,
                                    const std::vector<float>& slopes) {
  constexpr float kForever = std::numeric_limits<float>::infinity();
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return steps.push_back(clamp(0.0f, kForever));
    case Activation::relu6:
      return steps.push_back(clamp(0.0f, 6.0f));
    case Activation::hard_tanh:
      return steps.push_back(clamp(-1.0f, 1.0f));
    case Activation::prelu: {
      StepRecord step = step_of(StepKind::kPrelu);
      step.constant_a = writer_.constant(DataType::kF32, slopes);
      return steps.push_back(step);
    }
  }
  steps.push_back(step_of(function_of(activation)->kind));
}

void NetworkBuilder::check_added(const Epilogue& epilogue, const TensorInfo& out,
                                 const std::string& where) const {
  if (epilogue.added == 0) return;
  const TensorInfo& added = tensor(epilogue.added);
  if (added.dtype != ElementType::f32 || added.height != out.height || added.width != out.width ||
      added.channels != out.channels)
    fail(ErrorCode::input, "%s: the added tensor '%s' is %s of %dx%dx%d, expected f32 of %dx%dx%d",
         where.c_str(), added.name.c_str(),
         added.dtype == ElementType::f32  ? "f32"
         : added.dtype == ElementType::u8 ? "u8"
                                          : "bits",
         added.height, added.width, added.channels, out.height, out.width, out.channels);
}

}  // namespace phonebit::engine::builder
