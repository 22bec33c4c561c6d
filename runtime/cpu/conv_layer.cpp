// Convolutions without groups, of packed bits, of u8 pixels and of float32 values.
#include <cmath>

#include "analysis/conv_shape.h"
#include "analysis/float_weights.h"
#include "cpu/prepared_conv.h"
#include "cpu/ragged_bits.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

/// Phase 0 recodes the input (skipped where the kernel reads it as it is), phase 1 convolves, phase 2 copies
/// bits that could not be written in place.
template <class Family>
class ConvLayer final : public Layer {
 public:
  /// Weights and thresholds are the whole layer's.
  ConvLayer(const BuildContext& context, const Op& op, const OutputPart& part,
            const typename Family::Weight* weights, const int32_t* thresholds)
      : binding_(context, op, part),
        ragged_bits_(context, op, part),
        conv_(context, conv_shape(context, op, part),
              weights + static_cast<size_t>(part.channel_begin) * filter_elements(context.model, op),
              thresholds == nullptr ? nullptr : thresholds + part.channel_begin) {
    kernel_ = conv_.name();
    bind_operand(context, op, part, 0, &input_);
    const ConvShape& shape = conv_.shape();
    const size_t input_bytes = static_cast<size_t>(shape.in_h) * static_cast<size_t>(shape.in_w) *
                               pixel_bytes(context.model.operand(op));
    const double work_ns =
        conv_macs(shape) / Family::kMacsPerNs + elements_of(context, op, part) * epilogue_ns_per_element(op);
    rows_ = make_split(conv_.prepare_rows(), 1,
                       copy_ns(static_cast<double>(input_bytes + conv_.scratch_bytes())), context.threads);
    ranges_ =
        split_output(shape, conv_.pixel_tile(), conv_.packed_bytes(), input_bytes, work_ns, context.threads);
  }

  size_t packed_bytes() const override { return conv_.packed_bytes(); }
  size_t scratch_bytes() const override {
    return align_up(conv_.scratch_bytes()) + ragged_bits_.scratch_bytes();
  }
  void set_scratch(std::byte* scratch) override {
    scratch_ = scratch;
    ragged_bits_.set_scratch(scratch + align_up(conv_.scratch_bytes()));
  }
  int phases() const override { return 3; }
  int parts(int phase) const override {
    switch (phase) {
      case 0:
        return rows_.total > 0 ? rows_.parts : 0;
      case 1:
        return ranges_.parts();
      default:
        return ragged_bits_.parts();
    }
  }
  void run(int phase, int part, const Stop& /*stop*/) override {
    switch (phase) {
      case 0:
        return conv_.prepare(input_, scratch_, rows_.begin(part), rows_.end(part));
      case 1:
        return convolve(ranges_.range(part));
      default:
        return ragged_bits_.copy(part);
    }
  }

 private:
  /// Elements of one filter in the file.
  static size_t filter_elements(const loader::Model& model, const Op& op) {
    const int tap_elements = is_real<Family> ? model.operand(op).channels : words(model.operand(op).channels);
    return static_cast<size_t>(op.record.kernel_h) * static_cast<size_t>(op.record.kernel_w) *
           static_cast<size_t>(tap_elements);
  }

  void convolve(const OutputRange& range) const {
    Epilogue epilogue = binding_.epilogue();
    ragged_bits_.redirect(epilogue.bits, epilogue.pixel_words);
    if constexpr (is_real<Family>) {
      conv_.run(input_, scratch_, range, epilogue);
    } else {
      AccumulatorSink sink = binding_.accumulator_sink();
      sink.epilogue = &epilogue;
      ragged_bits_.redirect(sink.threshold_bits, sink.pixel_words);
      conv_.run(input_, scratch_, range, sink);
    }
  }

  EpilogueBinding binding_;
  RaggedBits ragged_bits_;
  PreparedConv<Family> conv_;
  const typename Family::Input* input_ = nullptr;
  std::byte* scratch_ = nullptr;
  Split rows_;
  RangeSplit ranges_;
};

}  // namespace

RangeSplit split_output(const ConvShape& shape, int pixel_tile, size_t weight_bytes, size_t input_bytes,
                        double work_ns, int threads) {
  const int pixels = shape.out_h * shape.out_w;
  const int blocks = (shape.out_c + kChannelBlock - 1) / kChannelBlock;
  if (work_ns / pixels / blocks * pixel_tile > kLargestPartNs) pixel_tile = 1;
  const int tiles = (pixels + pixel_tile - 1) / pixel_tile;
  const int parts = part_count(work_ns, threads);
  const bool blocks_first = weight_bytes > input_bytes;
  const int first_units = blocks_first ? blocks : tiles;
  const int second_units = blocks_first ? tiles : blocks;
  const int first = std::min(parts, first_units);
  const int second = std::min((parts + first - 1) / first, second_units);
  return {{pixels, pixel_tile, blocks_first ? second : first}, {blocks, 1, blocks_first ? first : second}};
}

memory::AlignedBuffer packed_buffer(const BuildContext& context, size_t bytes) {
  context.budget.take(bytes, "packed weights");
  return memory::AlignedBuffer(bytes, "packed weights");
}

double conv_macs(const ConvShape& shape) {
  return 1.0 * shape.out_h * shape.out_w * shape.out_c * shape.kernel_h * shape.kernel_w * shape.in_c;
}

const float* float_weights(const BuildContext& context, const Op& op) {
  const loader::Constant& weights = context.model.constant(op.record.weights);
  if (weights.dtype == DataType::kF32) return weights.f32();
  const size_t bytes = analysis::weight_count(context.model, op) * sizeof(float);
  context.budget.take(bytes, "expanded weights");
  float* const expanded = context.packing.keep(memory::AlignedBuffer(bytes, "expanded weights"));
  analysis::write_float_weights(context.model, op, expanded);
  return expanded;
}

std::unique_ptr<Layer> make_ungrouped_conv_layer(const BuildContext& context, const Op& op,
                                                 const OutputPart& part) {
  const int32_t* thresholds = context.packing.keep(analysis::integer_thresholds(context.model, op));
  const loader::Constant& weights = context.model.constant(op.record.weights);
  const DataType dtype = context.model.operand(op).dtype;
  if (dtype == DataType::kBit)
    return std::make_unique<ConvLayer<BinaryFamily>>(context, op, part, weights.words(), thresholds);
  if (dtype == DataType::kU8)
    return std::make_unique<ConvLayer<U8Family>>(context, op, part, weights.words(), thresholds);
  if (std::unique_ptr<Layer> layer = make_i8_conv_layer(context, op, part)) return layer;
  if (weights.dtype == DataType::kI8)
    return std::make_unique<ConvLayer<W8Family>>(context, op, part, weights.i8(), thresholds);
  if (weights.dtype == DataType::kF16)
    return std::make_unique<ConvLayer<F16Family>>(context, op, part, weights.f16(), thresholds);
  return std::make_unique<ConvLayer<F32Family>>(context, op, part, float_weights(context, op), thresholds);
}

static std::unique_ptr<Layer> make_conv_layer(const BuildContext& context, const Op& op,
                                              const OutputPart& part) {
  if (op.record.groups == 1) return make_ungrouped_conv_layer(context, op, part);
  if (analysis::is_float_depthwise(context.model, op)) return make_float_depthwise_layer(context, op, part);
  return make_grouped_conv_layer(context, op, part);
}

template <>
const MakeLayer LayersOf<format::OpKind::kBinaryConv2d>::make = make_conv_layer;
template <>
const MakeLayer LayersOf<format::OpKind::kConv2d>::make = make_conv_layer;

}  // namespace phonebit::engine::cpu
