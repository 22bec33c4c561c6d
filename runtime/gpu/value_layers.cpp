// Layers without weights: pooling, element-wise ops, concatenation, padding, reshaping, selection of
// channels, softmax.
#include "analysis/conv_shape.h"
#include "gpu/layer_parts.h"
#include "loader/model.h"

namespace phonebit::engine::gpu {
namespace {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;
using Shape = TestShape;

Layer build_pool(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op);
  layer.defines().set("POOL_MAX", op.kind == OpKind::kMaxPool2d);
  layer.defines().set("INPUT_HALF", build.memory.is_half(op.operands[0]));
  return layer.finish_with_sink(choice, {input_of(op)});
}

Layer build_bit_pool(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op);
  Argument flip_mask = layer.dummy();
  layer.defines().set("HAS_FLIP", op.record.flip_mask >= 0);
  if (op.record.flip_mask >= 0) {
    const loader::Constant& mask = build.model.constant(op.record.flip_mask);
    flip_mask = layer.upload(mask.words(), mask.count * sizeof(uint32_t), "flip mask");
  }
  return layer.finish_with_sink(choice, {input_of(op), flip_mask});
}

Layer build_elementwise(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op);
  const DataType dtype = build.model.operand(op).dtype;
  layer.defines().set("INPUT_KIND", dtype == DataType::kF32 ? 0 : dtype == DataType::kU8 ? 1 : 2);
  layer.defines().set("INPUT_HALF", build.memory.is_half(op.operands[0]));
  return layer.finish_with_sink(choice, {input_of(op)});
}

/// One launch an operand, in order: the words that two operands of bits share are written by the first and
/// added to by the second.
Layer build_concat(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  const int output = op.any_output();
  int offset = 0;
  for (const int operand : op.operands) {
    const int channels = build.model.tensor(operand).channels;
    layer.defines().set("IN_C", channels);
    layer.defines().set("IN_WORDS", cpu::words(channels));
    layer.defines().set("CHANNEL_OFFSET", offset);
    layer.defines().set("INPUT_HALF", build.memory.is_half(operand));
    layer.defines().set("VALUES_HALF", build.memory.is_half(output));
    layer.launch(choice.kernel, {Argument::of_tensor(operand), Argument::of_tensor(output)}, choice);
    offset += channels;
  }
  return layer.finish(choice);
}

Layer build_copying(LayerBuilder& layer, const BuildContext& build, const Op& op, const KernelChoice& choice,
                    std::vector<Argument> arguments) {
  layer.defines().set("INPUT_HALF", build.memory.is_half(op.operands[0]));
  layer.defines().set("VALUES_HALF", build.memory.is_half(op.record.value_output));
  arguments.push_back(Argument::of_tensor(op.record.value_output));
  layer.launch(choice.kernel, std::move(arguments), choice);
  return layer.finish(choice);
}

Layer build_pad(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  layer.defines().set("PAD_TOP", static_cast<int>(op.record.pad_top));
  layer.defines().set("PAD_LEFT", static_cast<int>(op.record.pad_left));
  layer.defines().set("PAD_FLOAT", float_literal(op.record.pad_value));
  return build_copying(layer, build, op, choice, {input_of(op)});
}

Layer build_softmax(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  layer.defines().set("SOFTMAX_LOG", op.kind == OpKind::kLogSoftmax);
  return build_copying(layer, build, op, choice, {input_of(op)});
}

Layer build_select_channels(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  const loader::Constant& constant = build.model.constant(op.record.weights);
  const Argument indices = layer.upload(constant.i32(), constant.count * sizeof(int32_t), "channel indices");
  return build_copying(layer, build, op, choice, {input_of(op), indices});
}

Layer build_resize(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  const bool at_corners =
      op.kind == OpKind::kResizeBilinearCorners || op.kind == OpKind::kResizeBicubicCorners;
  layer.defines().set("AT_CORNERS", at_corners);
  return build_copying(layer, build, op, choice, {input_of(op)});
}

Layer build_product(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  layer.defines().set("TRANSPOSED", op.kind == OpKind::kMatmulTransposed);
  layer.defines().set("FACTOR_HALF", build.memory.is_half(op.operands[1]));
  return build_copying(layer, build, op, choice, {input_of(op), Argument::of_tensor(op.operands[1])});
}

/// Buffers of planes that the op does not have are those of its first.
Layer build_bit_planes(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  layer.defines().set("INPUT_HALF", build.memory.is_half(op.operands[0]));
  const auto planes = static_cast<int>(op.record.planes);
  layer.defines().set("PLANES", planes);
  std::vector<Argument> arguments{input_of(op)};
  for (int b = 0; b < static_cast<int>(ops::kMaxPlanes); ++b)
    arguments.push_back(Argument::of_tensor(op.record.bits_output + (b < planes ? b : 0)));
  layer.launch(choice.kernel, std::move(arguments), choice);
  return layer.finish(choice);
}

/// Operand and output mostly share their memory. Where they do not, because both belong to the caller or
/// differ in precision, this is a concatenation of one: the same elements in the same order.
Layer build_reshape(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  const int from = op.operands[0], to = op.record.value_output;
  if (build.memory.is_shared(from, to)) {
    Layer none;
    none.kernel = "none";
    return none;
  }
  LayerBuilder layer(build, op, LayerBuilder::without_sink);
  const loader::Tensor& out = build.model.tensor(to);
  layer.defines().set("IN_H", out.height);
  layer.defines().set("IN_W", out.width);
  layer.defines().set("IN_C", out.channels);
  layer.defines().set("CHANNEL_OFFSET", 0);
  return build_copying(layer, build, op, choice, {input_of(op)});
}

const OpKernels& max_pool_kernels(const Model& model, const Op& op) {
  return model.operand(op).dtype == DataType::kBit ? always<kBitPoolFamily, build_bit_pool>(model, op)
                                                   : always<kMaxPoolFamily, build_pool>(model, op);
}
const OpKernels& concat_kernels(const Model& model, const Op& op) {
  return model.operand(op).dtype == DataType::kBit ? always<kBitConcatFamily, build_concat>(model, op)
                                                   : always<kFloatConcatFamily, build_concat>(model, op);
}
const OpKernels& matmul_transposed_kernels(const Model& model, const Op& op) {
  return model.operand(op).dtype == DataType::kBit
             ? always<kBitMatmulFamily, build_product>(model, op)
             : always<kMatmulTransposedFamily, build_product>(model, op);
}

}  // namespace

template <>
const OperatorKernels KernelsOf<OpKind::kMaxPool2d>::all = {
    max_pool_kernels,
    {{"max_pool2d", DataType::kF32, {7, 9, 37}, {2, 2, 2, 1, 1, 0.0f}, 1, 37, Shape::kEpilogue},
     {"max_pool2d_bits", DataType::kBit, {7, 9, 70}, {3, 3, 2, 1, 1, 0.0f}, 1, 70, Shape::kCopies}}};
template <>
const OperatorKernels KernelsOf<OpKind::kAveragePool2d>::all = {
    always<kAveragePoolFamily, build_pool>,
    {{"average_pool2d", DataType::kF32, {7, 9, 37}, {5, 6, 2, 1, 2, 0.0f}, 1, 37, Shape::kEpilogue}}};
template <>
const OperatorKernels KernelsOf<OpKind::kElementwise>::all = {
    always<kElementwiseFamily, build_elementwise>,
    {{"elementwise", DataType::kF32, {5, 7, 37}, Shape::kNoWindow, 1, 37, Shape::kEpilogue},
     {"elementwise", DataType::kU8, {5, 7, 37}, Shape::kNoWindow, 1, 37, Shape::kEpilogue},
     {"elementwise", DataType::kBit, {5, 7, 37}, Shape::kNoWindow, 1, 37, Shape::kEpilogue},
     {"elementwise", DataType::kF32, {5, 7, 37}, Shape::kNoWindow, 1, 37, Shape::kRoundedEpilogue}}};
template <>
const OperatorKernels KernelsOf<OpKind::kConcat>::all = {
    concat_kernels,
    {{"concat", DataType::kF32, {5, 7, 37}, Shape::kNoWindow, 1, 87, Shape::kCopies},
     {"concat_bits", DataType::kBit, {5, 7, 37}, Shape::kNoWindow, 1, 87, Shape::kCopies}}};
template <>
const OperatorKernels KernelsOf<OpKind::kPad>::all = {
    always<kPadFamily, build_pad>,
    {{"pad", DataType::kF32, {5, 7, 6}, {0, 0, 1, 1, 2, 0.5f}, 1, 6, Shape::kCopies}}};
// Where RESHAPE copies at all, it is by the kernel of CONCAT.
template <>
const OperatorKernels KernelsOf<OpKind::kReshape>::all = {always<kReshapeFamily, build_reshape>, {}};
template <>
const OperatorKernels KernelsOf<OpKind::kSelectChannels>::all = {
    always<kSelectChannelsFamily, build_select_channels>,
    {{"select_channels", DataType::kF32, {5, 7, 37}, Shape::kNoWindow, 1, 42, Shape::kCopies}}};
// Without correctly rounded division a device is allowed 2.5 units in the last place.
template <>
const OperatorKernels KernelsOf<OpKind::kSoftmax>::all = {
    always<kSoftmaxFamily, build_softmax>,
    {{"softmax", DataType::kF32, {2, 3, 37}, Shape::kNoWindow, 1, 37, Shape::kCopies, 0, 1e-6f}}};
template <>
const OperatorKernels KernelsOf<OpKind::kLogSoftmax>::all = {
    always<kLogSoftmaxFamily, build_softmax>,
    {{"log_softmax", DataType::kF32, {2, 3, 37}, Shape::kNoWindow, 1, 37, Shape::kCopies}}};

template <>
const OperatorKernels KernelsOf<OpKind::kMatmul>::all = {
    always<kMatmulFamily, build_product>,
    {{"matmul", DataType::kF32, {5, 7, 39}, {1, 1, 1, 1, 0, 0.0f}, 3, 33, Shape::kValues},
     {"matmul", DataType::kF32, {5, 7, 39}, {1, 1, 1, 1, 0, 0.0f}, 3, 36, Shape::kValues}}};
template <>
const OperatorKernels KernelsOf<OpKind::kMatmulTransposed>::all = {
    matmul_transposed_kernels,
    {{"matmul_transposed", DataType::kF32, {5, 7, 39}, {1, 1, 1, 1, 0, 0.0f}, 3, 33, Shape::kValues},
     {"matmul_transposed", DataType::kF32, {5, 7, 39}, {1, 1, 1, 1, 0, 0.0f}, 3, 36, Shape::kValues},
     {"matmul_bits", DataType::kBit, {5, 7, 210}, {1, 1, 1, 1, 0, 0.0f}, 3, 33, Shape::kValues}}};
template <>
const OperatorKernels KernelsOf<OpKind::kBitPlanes>::all = {
    always<kBitPlanesFamily, build_bit_planes>,
    {{"bit_planes", DataType::kF32, {5, 7, 37}, Shape::kNoWindow, 1, 37, Shape::kPlanes}}};

// The map grows by its padding on all sides.
template <>
const OperatorKernels KernelsOf<OpKind::kResizeBilinear>::all = {
    always<kResizeFamily, build_resize>,
    {{"resize_bilinear", DataType::kF32, {5, 7, 37}, {0, 0, 1, 1, 2, 0.0f}, 1, 37, Shape::kCopies}}};
template <>
const OperatorKernels KernelsOf<OpKind::kResizeBilinearCorners>::all = {
    always<kResizeCornersFamily, build_resize>,
    {{"resize_bilinear_corners", DataType::kF32, {7, 4, 12}, {0, 0, 1, 1, 3, 0.0f}, 1, 12, Shape::kCopies}}};
template <>
const OperatorKernels KernelsOf<OpKind::kResizeBicubic>::all = {
    always<kBicubicFamily, build_resize>,
    {{"resize_bicubic", DataType::kF32, {5, 7, 37}, {0, 0, 1, 1, 2, 0.0f}, 1, 37, Shape::kCopies}}};
template <>
const OperatorKernels KernelsOf<OpKind::kResizeBicubicCorners>::all = {
    always<kBicubicCornersFamily, build_resize>,
    {{"resize_bicubic_corners", DataType::kF32, {7, 4, 12}, {0, 0, 1, 1, 3, 0.0f}, 1, 12, Shape::kCopies}}};

}  // namespace phonebit::engine::gpu
