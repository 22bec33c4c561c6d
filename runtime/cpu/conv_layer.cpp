// Convolutions without groups, of packed bits, of u8 pixels and of float32 values.
#include "analysis/conv_shape.h"
#include "analysis/float_weights.h"
#include "cpu/part_slots.h"
#include "cpu/prepared_conv.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

/// Phase 0 recodes the input (skipped where the kernel reads it as it is), phase 1 convolves.
class ConvLayer final : public Layer {
 public:
  ConvLayer(const BuildContext& context, const Op& op, const OutputPart& part,
            std::unique_ptr<PreparedConv> conv)
      : binding_(context, op, part), conv_(std::move(conv)) {
    kernel_ = conv_->name();
    levels_ = &binding_;
    convolution_ = conv_.get();
    bind_operand(context, op, part, 0, &input_);
    const ConvShape& shape = conv_->shape();
    const size_t input_bytes = static_cast<size_t>(shape.in_h) * static_cast<size_t>(shape.in_w) *
                               pixel_bytes(context.model.operand(op));
    const double work_ns = conv_macs(shape) / conv_->macs_per_ns() +
                           elements_of(context, op, part) * epilogue_ns_per_element(op);
    rows_ = make_split(conv_->prepare_rows(), 1,
                       copy_ns(static_cast<double>(input_bytes + conv_->scratch_bytes())), context.threads);
    ranges_ = split_output(shape, conv_->pixel_tile(), conv_->block_tile(), conv_->packed_bytes(),
                           input_bytes, work_ns, context.threads);
  }

  size_t packed_bytes() const override { return conv_->packed_bytes(); }
  size_t scratch_bytes() const override { return conv_->scratch_bytes(); }
  void set_scratch(std::byte* scratch) override { scratch_ = scratch; }
  int phases() const override { return 2; }
  int parts(int phase) const override {
    if (phase == 1) return ranges_.parts();
    return rows_.total > 0 ? rows_.parts : 0;
  }
  void run(int phase, int part, const Stop& /*stop*/) override {
    if (phase == 0) return conv_->prepare(input_, scratch_, rows_.begin(part), rows_.end(part));
    conv_->run(input_, scratch_, ranges_.range(part), binding_.accumulator_sink());
  }

 private:
  EpilogueBinding binding_;
  std::unique_ptr<PreparedConv> conv_;
  const std::byte* input_ = nullptr;
  std::byte* scratch_ = nullptr;
  Split rows_;
  RangeSplit ranges_;
};

}  // namespace

std::unique_ptr<Layer> make_ungrouped_conv_layer(const BuildContext& context, const Op& op,
                                                 const OutputPart& part) {
  const DataType input = context.model.operand(op).dtype;
  if (input == DataType::kF32) {
    if (std::unique_ptr<Layer> layer = make_i8_conv_layer(context, op, part)) return layer;
  }
  const int32_t* thresholds = context.packing.keep(analysis::integer_thresholds(context.model, op));
  const loader::Constant& constant = context.model.constant(op.record.weights);
  const std::byte* weights = constant.data;
  size_t bytes = constant.bytes();
  if (input == DataType::kF32 && constant.dtype != DataType::kI8 && constant.dtype != DataType::kF16) {
    weights = reinterpret_cast<const std::byte*>(float_weights(context, op));
    bytes = analysis::weight_count(context.model, op) * sizeof(float);
  }
  std::unique_ptr<PreparedConv> conv =
      prepare_conv(context, conv_shape(context, op, part), input, constant.dtype);
  // Those of the whole layer, of which the part has its own channels'.
  const auto first = static_cast<size_t>(part.channel_begin);
  const auto channels = static_cast<size_t>(context.model.output(op).channels);
  conv->add_packing(context, weights + bytes / channels * first,
                    thresholds == nullptr ? nullptr : thresholds + first);
  return std::make_unique<ConvLayer>(context, op, part, std::move(conv));
}

std::unique_ptr<Layer> make_plane_pair(const BuildContext& context, size_t index, const Layer& low,
                                       const Layer& high) {
  const Op &first = context.model.ops[index - 1], &second = context.model.ops[index];
  std::unique_ptr<PreparedConv> conv = low.convolution()->with_plane(context, first, *high.convolution());
  if (conv == nullptr) return nullptr;
  Op both = second;  // less the steps that weigh and add
  both.steps = first.steps;
  both.steps.insert(both.steps.end(), second.steps.begin() + 2, second.steps.end());
  return std::make_unique<ConvLayer>(context, both, analysis::whole_part(context.model, second),
                                     std::move(conv));
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
