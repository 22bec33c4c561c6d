// Depthwise convolutions: one filter a channel, over packed bits or float32 values.
#include "analysis/conv_shape.h"
#include "cpu/part_slots.h"
#include "cpu/prepared_conv.h"

namespace phonebit::engine::cpu {
namespace {

using loader::Op;

double depthwise_work_ns(const ConvShape& shape, double taps_per_ns, const Op& op) {
  const double taps = 1.0 * shape.kernel_h * shape.kernel_w;
  const double elements = 1.0 * shape.out_h * shape.out_w * shape.out_c;
  return elements * (taps / taps_per_ns + epilogue_ns_per_element(op));
}

class BinaryDepthwiseLayer final : public SplitLayer {
 public:
  BinaryDepthwiseLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : binding_(context, op, part),
        shape_(conv_shape(context, op, part)),
        run_rows_(context.isa.values->binary_depthwise),
        weights_(context.model.constant(op.record.weights).words()),
        thresholds_(analysis::integer_thresholds(context.model, op)) {
    kernel_ = std::string("binary_depthwise_b32__") + context.isa.name;
    bind_operand(context, op, part, 0, &input_);
    split_ = make_split(shape_.out_h, 1, depthwise_work_ns(shape_, 8.0, op), context.threads);
  }

  void run_range(int begin, int end, const Stop& stop) override {
    run_rows_(shape_, weights_, thresholds_.empty() ? nullptr : thresholds_.data(), input_, begin, end,
              binding_.accumulator_sink(), stop);
  }

 private:
  EpilogueBinding binding_;
  ConvShape shape_;
  decltype(ValueKernels::binary_depthwise) run_rows_;
  const uint32_t* weights_;
  std::vector<int32_t> thresholds_;
  const uint32_t* input_ = nullptr;
};

class FloatDepthwiseLayer final : public SplitLayer {
 public:
  FloatDepthwiseLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : binding_(context, op, part), shape_(conv_shape(context, op, part)), values_(context.isa.values) {
    kernel_ = std::string("depthwise_f32_f32__") + context.isa.name;
    bind_operand(context, op, part, 0, &input_);
    pack_weights(context, op);
    split_ = make_split(shape_.out_h, 1, depthwise_work_ns(shape_, 8.0, op), context.threads);
  }

  size_t packed_bytes() const override { return weights_.size(); }
  void run_range(int begin, int end, const Stop& stop) override {
    values_->depthwise_f32(shape_, weights_.as<float>(), input_, begin, end, binding_.epilogue(), stop);
  }

 private:
  /// From [channel][tap], as in the file, to [tap][channel].
  void pack_weights(const BuildContext& context, const Op& op) {
    const float* source = float_weights(context, op);
    const auto taps = static_cast<size_t>(shape_.kernel_h) * static_cast<size_t>(shape_.kernel_w);
    const auto channels = static_cast<size_t>(shape_.out_c);
    context.budget.take(taps * channels * sizeof(float), "packed weights");
    weights_ = memory::AlignedBuffer(taps * channels * sizeof(float), "packed weights");
    for (size_t c = 0; c < channels; ++c) {
      for (size_t tap = 0; tap < taps; ++tap)
        weights_.as<float>()[tap * channels + c] = source[c * taps + tap];
    }
  }

  EpilogueBinding binding_;
  ConvShape shape_;
  const ValueKernels* values_;
  memory::AlignedBuffer weights_;
  const float* input_ = nullptr;
};

}  // namespace

PHONEBIT_LAYERS(kBinaryDepthwiseConv2d, make_one<BinaryDepthwiseLayer>)

std::unique_ptr<Layer> make_float_depthwise_layer(const BuildContext& context, const Op& op,
                                                  const OutputPart& part) {
  return std::make_unique<FloatDepthwiseLayer>(context, op, part);
}

}  // namespace phonebit::engine::cpu
