// Convolutions without groups, of packed bits, of u8 pixels and of float32 values.
#include <cmath>

#include "cpu/prepared_conv.h"
#include "lowering/float_weights.h"

namespace phonebit::cpu {
namespace {

using format::DataType;
using loader::Op;

/// Phase 0 recodes the input (skipped where the kernel reads it as it is), phase 1 convolves.
template <class Family>
class ConvLayer final : public Layer {
 public:
  ConvLayer(const BuildContext& context, const Op& op, const typename Family::Weight* weights,
            const int32_t* thresholds)
      : binding_(context, op), conv_(context, conv_shape(context.model, op), weights, thresholds) {
    kernel_ = conv_.name();
    context.storage.bind(op.operands[0], &input_);
    const loader::Tensor& out = context.model.output(op);
    const auto input_bytes = static_cast<double>(context.model.operand(op).bytes());
    const double work_ns = conv_macs(conv_.shape()) / Family::kMacsPerNs +
                           static_cast<double>(out.elements()) * epilogue_ns_per_element(op);
    rows_ = make_split(conv_.prepare_rows(), 1,
                       copy_ns(input_bytes + static_cast<double>(conv_.scratch_bytes())), context.threads);
    ranges_ = split_output(conv_.shape(), conv_.pixel_tile(), conv_.packed_bytes(),
                           context.model.operand(op).bytes(), work_ns, context.threads);
  }

  size_t packed_bytes() const override { return conv_.packed_bytes(); }
  size_t scratch_bytes() const override { return conv_.scratch_bytes(); }
  void set_scratch(std::byte* scratch) override { scratch_ = scratch; }
  int phases() const override { return 2; }
  int parts(int phase) const override {
    if (phase == 1) return ranges_.parts();
    return rows_.total > 0 ? rows_.parts : 0;
  }
  void run(int phase, int part) override {
    if (phase == 0) return conv_.prepare(input_, scratch_, rows_.begin(part), rows_.end(part));
    if constexpr (is_real<Family>)
      conv_.run(input_, scratch_, ranges_.range(part), binding_.epilogue());
    else
      conv_.run(input_, scratch_, ranges_.range(part), binding_.accumulator_sink());
  }

 private:
  EpilogueBinding binding_;
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
  const int tiles = (pixels + pixel_tile - 1) / pixel_tile;
  const int parts = part_count(work_ns, threads);
  const bool blocks_first = weight_bytes > input_bytes;
  const int first_units = blocks_first ? blocks : tiles;
  const int second_units = blocks_first ? tiles : blocks;
  const int first = std::min(parts, first_units);
  const int second = std::min((parts + first - 1) / first, second_units);
  return {{pixels, pixel_tile, blocks_first ? second : first}, {blocks, 1, blocks_first ? first : second}};
}

double conv_macs(const ConvShape& shape) {
  return 1.0 * shape.out_h * shape.out_w * shape.out_c * shape.kernel_h * shape.kernel_w * shape.in_c;
}

const float* float_weights(const BuildContext& context, const Op& op) {
  const loader::Constant& weights = context.model.constant(op.record.weights);
  if (weights.dtype == DataType::kF32) return weights.f32();
  const size_t bytes = lowering::weight_count(context.model, op) * sizeof(float);
  context.budget.take(bytes, "expanded weights");
  float* const expanded = context.packing.keep(memory::AlignedBuffer(bytes, "expanded weights"));
  lowering::write_float_weights(context.model, op, expanded);
  return expanded;
}

std::unique_ptr<Layer> make_conv_layer(const BuildContext& context, const Op& op) {
  const int32_t* thresholds = context.packing.keep(integer_thresholds(context.model, op));
  const uint32_t* bit_weights = context.model.constant(op.record.weights).words();
  switch (context.model.operand(op).dtype) {
    case DataType::kBit:
      return std::make_unique<ConvLayer<BinaryFamily>>(context, op, bit_weights, thresholds);
    case DataType::kU8:
      return std::make_unique<ConvLayer<U8Family>>(context, op, bit_weights, thresholds);
    default:
      break;
  }
  const loader::Constant& weights = context.model.constant(op.record.weights);
  if (weights.dtype == DataType::kF16)
    return std::make_unique<ConvLayer<F16Family>>(context, op, weights.f16(), thresholds);
  return std::make_unique<ConvLayer<F32Family>>(context, op, float_weights(context, op), thresholds);
}

}  // namespace phonebit::cpu
