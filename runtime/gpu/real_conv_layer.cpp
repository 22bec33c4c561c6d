// Convolutions of u8 pixels and of float values.
#include "analysis/border_table.h"
#include "analysis/conv_shape.h"
#include "analysis/float_weights.h"
#include "format/half.h"
#include "gpu/layer_parts.h"

namespace phonebit::engine::gpu {
namespace {

using format::DataType;
using format::OpKind;
using loader::Model;
using loader::Op;
using Shape = TestShape;

size_t window_taps(const cpu::ConvShape& shape, const Op& op) {
  return static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w) *
         static_cast<size_t>(shape.in_c / static_cast<int>(op.record.groups));
}

/// The weights of a CONV2D as floats [OUT_C][taps].
std::vector<float> float_weights(const Model& model, const Op& op) {
  std::vector<float> values(analysis::weight_count(model, op));
  analysis::write_float_weights(model, op, values.data());
  return values;
}

/// [taps][channels rounded up to `multiple`] from [channels][taps].
std::vector<float> transposed(const std::vector<float>& filters, size_t channels, size_t multiple) {
  const size_t taps = filters.size() / channels, stride = (channels + multiple - 1) / multiple * multiple;
  std::vector<float> result(taps * stride, 0.0f);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t t = 0; t < taps; ++t) result[t * stride + c] = filters[c * taps + t];
  }
  return result;
}

/// What the lanes of a warp load, chunk by chunk, as conv2d_f32_mma.cl and conv2d_u8_mma.cl deal elements to lanes
/// and filters to columns: the kernels' `@weights mma of halves` and `mma of bytes`, as floats.
std::vector<float> dealt(const std::vector<float>& weights, size_t filters, size_t tile, size_t ways) {
  const size_t window = weights.size() / filters, tiles = (filters + tile - 1) / tile;
  const size_t chunks = (window + 32 * ways - 1) / (32 * ways) * ways;
  std::vector<float> result(tiles * chunks * tile * 32, 0.0f);
  for (size_t filter = 0; filter < filters; ++filter) {
    const size_t quarter = filter % tile / (tile / 4), place = filter % (tile / 4);
    const size_t block = place / 2, column = 2 * quarter + place % 2;
    for (size_t k = 0; k < window; ++k) {
      const size_t chunk = filter / tile * chunks + k / 32, lane = 4 * column + k % 32 / 8;
      result[((chunk * (tile / 8) + block) * 32 + lane) * 8 + k % 8] = weights[filter * window + k];
    }
  }
  return result;
}

class FloatConvBuilder {
 public:
  FloatConvBuilder(const BuildContext& build, const Op& op, const KernelChoice& choice)
      : op_(op), choice_(choice), layer_(build, op), weights_(float_weights(build.model, op)) {
    layer_.defines().set("INPUT_HALF", build.memory.is_half(op.operands[0]));
    if (!build.device.facts().has_fma) layer_.defines().set("FUSED", 0);
  }

  Layer build(const std::vector<float>& weights) { return finish(layer_.upload(weights, "weights")); }
  Layer build_mma() {
    const auto size = [&](const char* name) { return static_cast<size_t>(choice_.parameter(name)); };
    const std::vector<float> weights =
        dealt(weights_, static_cast<size_t>(layer_.shape().out_c), size("TILE_FILTERS"), size("SPLIT"));
    return finish(layer_.upload(format::to_halves(weights.data(), weights.size()), "weights"));
  }
  Layer build_tiled() {
    const std::vector<float> tiled = transposed(weights_, static_cast<size_t>(layer_.shape().out_c), 4);
    if (choice_.kernel != "conv2d_f32" || choice_.parameter("ARITHMETIC") == 0) return build(tiled);
    return finish(layer_.upload(format::to_halves(tiled.data(), tiled.size()), "weights"));
  }
  Layer build_canonical() { return build(weights_); }
  Layer build_depthwise() {
    return build(transposed(weights_, static_cast<size_t>(layer_.shape().out_c), 1));
  }

 private:
  Layer finish(Argument weights) { return layer_.finish_with_sink(choice_, {input_of(op_), weights}); }

  const Op& op_;
  const KernelChoice& choice_;
  LayerBuilder layer_;
  std::vector<float> weights_;
};

Layer build_float(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  FloatConvBuilder builder(build, op, choice);
  if (kHasTensorCores && choice.kernel == "conv2d_f32_mma") return builder.build_mma();
  const bool is_canonical = choice.kernel == "conv2d_f32_dot" || choice.kernel == "conv2d_f32_grouped";
  return is_canonical ? builder.build_canonical() : builder.build_tiled();
}

Layer build_float_depthwise(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  return FloatConvBuilder(build, op, choice).build_depthwise();
}

/// Bit t of a filter's window, for `@weights planes`: [window words][32 * OUT_WORDS].
std::vector<uint32_t> plane_weights(const cpu::ConvShape& shape, const uint32_t* weights) {
  const auto channels = static_cast<size_t>(shape.in_c),
             tap_words = static_cast<size_t>(cpu::words(shape.in_c));
  const auto taps = static_cast<size_t>(shape.kernel_h) * static_cast<size_t>(shape.kernel_w);
  const size_t stride = 32 * static_cast<size_t>(cpu::words(shape.out_c));
  std::vector<uint32_t> planes((taps * channels + 31) / 32 * stride, 0);
  for (size_t filter = 0; filter < static_cast<size_t>(shape.out_c); ++filter) {
    for (size_t t = 0; t < taps * channels; ++t) {
      const size_t tap = t / channels, c = t % channels;
      const uint32_t word = weights[(filter * taps + tap) * tap_words + c / 32];
      planes[t / 32 * stride + filter] |= (word >> (c % 32) & 1) << (t % 32);
    }
  }
  return planes;
}

/// `@weights mma of bytes`: rows of the window in octets, of which the last one ends with the row and has
/// zeros for what the one before it has.
std::vector<int8_t> mma_bytes(const cpu::ConvShape& shape, const std::vector<float>& weights, size_t tile) {
  const auto run = static_cast<size_t>(shape.kernel_w * shape.in_c), octets = (run + 7) / 8 * 8;
  std::vector<float> rows(weights.size() / run * octets, 0.0f);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t at = i % run, end = i / run * octets + at;
    rows[at < run / 8 * 8 ? end : end + octets - run] = weights[i];
  }
  const std::vector<float> result = dealt(rows, static_cast<size_t>(shape.out_c), tile, 1);
  return {result.begin(), result.end()};
}

Argument u8_thresholds(LayerBuilder& layer, const Model& model, const Op& op) {
  if (!layer.sink().is_threshold) return layer.dummy();
  std::vector<int32_t> table = analysis::integer_thresholds(model, op);
  table.resize(32 * static_cast<size_t>(cpu::words(layer.shape().out_c)), INT32_MAX);
  return layer.upload(table, "thresholds");
}

Layer build_u8(const BuildContext& build, const Op& op, const KernelChoice& choice) {
  LayerBuilder layer(build, op);
  const cpu::ConvShape& shape = layer.shape();
  layer.defines().set("INPUT_MUL", shape.input_mul);
  layer.defines().set("INPUT_ADD", shape.input_add);
  const loader::Constant& weights = build.model.constant(op.record.weights);
  const Argument table = u8_thresholds(layer, build.model, op);
  std::vector<Argument> arguments;
  if (choice.kernel == "conv2d_u8_direct") {
    arguments = {input_of(op), layer.upload(weights.words(), weights.count * sizeof(uint32_t), "weights"),
                 table};
  } else if (kHasTensorCores && choice.kernel == "conv2d_u8_mma") {
    const auto tile = static_cast<size_t>(choice.parameter("TILE_FILTERS"));
    arguments = {input_of(op),
                 layer.upload(mma_bytes(shape, float_weights(build.model, op), tile), "weights"), table};
  } else if (choice.kernel == "conv2d_u8_pairs") {
    const std::vector<float> signs =
        transposed(float_weights(build.model, op), static_cast<size_t>(shape.out_c), 32);
    arguments = {input_of(op), layer.upload(std::vector<int32_t>(signs.begin(), signs.end()), "weights"),
                 table};
  } else {
    const size_t words = (window_taps(shape, op) + 31) / 32;
    const size_t pixels = static_cast<size_t>(shape.out_h) * static_cast<size_t>(shape.out_w);
    // Eight planes, and one of the taps inside the map where that matters.
    const std::string* const padded = layer.defines().find("PADDED");
    const size_t planes = *padded == "1" && shape.input_add != 0 ? 9 : 8;
    layer.set_scratch(pixels * words * planes * sizeof(uint32_t));
    layer.set_size("WINDOW_WORDS", static_cast<int>(words));
    layer.launch(kSplitPlanes, {input_of(op), Argument::scratch()});
    arguments = {Argument::scratch(), layer.upload(plane_weights(shape, weights.words()), "weights"), table};
  }
  return layer.finish_with_sink(choice, std::move(arguments));
}

const OpKernels& conv_kernels(const Model& model, const Op& op) {
  if (model.operand(op).dtype == DataType::kU8) return always<kU8ConvFamily, build_u8>(model, op);
  if (op.record.groups == 1) return always<kFloatConvFamily, build_float>(model, op);
  return analysis::is_float_depthwise(model, op)
             ? always<kFloatDepthwiseFamily, build_float_depthwise>(model, op)
             : always<kFloatGroupedConvFamily, build_float>(model, op);
}

}  // namespace

template <>
const OperatorKernels KernelsOf<OpKind::kConv2d>::all = {
    conv_kernels,
    {{"conv2d_f32", DataType::kF32, {6, 9, 24}, {3, 3, 1, 1, 1, 0.0f}, 1, 20, Shape::kEpilogue},
     {"conv2d_f32", DataType::kF32, {6, 9, 3}, {3, 3, 1, 1, 1, 0.0f}, 1, 17, Shape::kEpilogue},
     {"conv2d_f32", DataType::kF32, {9, 7, 37}, {1, 1, 2, 1, 0, 0.0f}, 1, 50, Shape::kEpilogue},
     {"conv2d_f32", DataType::kF32, {4, 5, 29}, {4, 5, 1, 1, 0, 0.0f}, 1, 44, Shape::kEpilogue},
     {"conv2d_f32_grouped", DataType::kF32, {6, 9, 12}, {3, 3, 1, 1, 1, 0.0f}, 3, 18, Shape::kEpilogue},
     {"conv2d_u8", DataType::kU8, {10, 9, 3}, {3, 3, 2, 1, 1, 0.0f}, 1, 40, Shape::kThresholds, 255 * 5},
     {"conv2d_u8", DataType::kU8, {10, 9, 3}, {3, 3, 2, 1, 1, 0.0f}, 1, 40, Shape::kEpilogue},
     {"depthwise_conv2d_f32", DataType::kF32, {6, 9, 21}, {3, 3, 1, 1, 1, 0.0f}, 21, 21, Shape::kEpilogue}}};

}  // namespace phonebit::engine::gpu
