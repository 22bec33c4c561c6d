// Memory-bound layers: pooling by output rows, elementwise ops and softmax by pixels.
#include <algorithm>
#include <type_traits>

#include "cpu/epilogue_binding.h"
#include "cpu/part_slots.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using format::OpKind;
using loader::Op;

class FloatPoolLayer final : public SplitLayer {
 public:
  FloatPoolLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : binding_(context, op, part), shape_(conv_shape(context, op, part)) {
    const bool is_max = op.kind == OpKind::kMaxPool2d;
    pool_ = is_max ? context.isa.values->max_pool_f32 : context.isa.values->average_pool_f32;
    kernel_ = std::string(is_max ? "max_pool_f32__" : "average_pool_f32__") + context.isa.name;
    levels_ = &binding_;
    bind_operand(context, op, part, 0, &input_);
    const double taps = 1.0 * shape_.kernel_h * shape_.kernel_w;
    const double elements = elements_of(context, op, part);
    split_ =
        make_split(shape_.out_h, 1, elements * (0.1 * taps + epilogue_ns_per_element(op)), context.threads);
  }

  void run_range(int begin, int end, const Stop& stop) override {
    pool_(shape_, input_, begin, end, binding_.epilogue(), stop);
  }

 private:
  EpilogueBinding binding_;
  ConvShape shape_;
  decltype(ValueKernels::max_pool_f32) pool_;
  const float* input_ = nullptr;
};

class BitPoolLayer final : public SplitLayer {
 public:
  BitPoolLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : shape_(conv_shape(context, op, part)), pool_(context.isa.values->max_pool_bits) {
    kernel_ = std::string("max_pool_b32__") + context.isa.name;
    if (op.record.flip_mask >= 0)
      flip_mask_ = context.model.constant(op.record.flip_mask).words() + part.channel_begin / 32;
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.bits_output, part, &output_);
    const double taps = 1.0 * shape_.kernel_h * shape_.kernel_w;
    const double output_bytes = row_bytes_of(context, op, part);
    split_ = make_split(shape_.out_h, 1, copy_ns(output_bytes * (taps + 1)), context.threads);
  }

  void run_range(int begin, int end, const Stop& stop) override {
    pool_(shape_, flip_mask_, input_, begin, end, output_, stop);
  }

 private:
  ConvShape shape_;
  decltype(ValueKernels::max_pool_bits) pool_;
  const uint32_t* flip_mask_ = nullptr;
  const uint32_t* input_ = nullptr;
  uint32_t* output_ = nullptr;
};

/// Input is the element type that the kernel reads: float, uint8_t, or uint32_t for packed bits.
template <class Input>
class ElementwiseLayer final : public SplitLayer {
 public:
  using Function = void (*)(const Input*, int, int, const Epilogue&, const Stop&);

  ElementwiseLayer(const BuildContext& context, const Op& op, const OutputPart& part, const char* name,
                   Function function)
      : binding_(context, op, part), function_(function) {
    kernel_ = std::string(name) + context.isa.name;
    levels_ = &binding_;
    bind_operand(context, op, part, 0, &input_);
    const int pixels = pixels_of(context, op, part), width = context.model.output(op).width;
    const double input_bytes = static_cast<double>(pixel_bytes(context.model.operand(op))) * pixels;
    const double work_ns = copy_ns(input_bytes + row_bytes_of(context, op, part)) +
                           elements_of(context, op, part) * epilogue_ns_per_element(op);
    const bool joins = !std::is_same_v<Input, uint32_t> && binding_.join_rows(op, width);
    split_ = make_split(joins ? pixels / width : pixels, 1, work_ns, context.threads);
  }

  void run_range(int begin, int end, const Stop& stop) override {
    function_(input_, begin, end, binding_.epilogue(), stop);
  }

 private:
  EpilogueBinding binding_;
  Function function_;
  const Input* input_ = nullptr;
};

class SoftmaxLayer final : public SplitLayer {
 public:
  SoftmaxLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : channels_(context.model.output(op).channels) {
    const bool is_log = op.kind == OpKind::kLogSoftmax;
    softmax_ = is_log ? context.isa.values->log_softmax : context.isa.values->softmax;
    kernel_ = std::string(is_log ? "log_softmax_f32__" : "softmax_f32__") + context.isa.name;
    bind_operand(context, op, part, 0, &input_);
    bind_output(context, op.record.value_output, part, &output_);
    split_pixels(context, op, part, elements_of(context, op, part));
  }

  void run_range(int begin, int end, const Stop& /*stop*/) override {
    softmax_(input_, begin, end, channels_, output_);
  }

 private:
  int channels_;
  decltype(ValueKernels::softmax) softmax_;
  const float* input_ = nullptr;
  float* output_ = nullptr;
};

class BitPlanesLayer final : public SplitLayer {
 public:
  BitPlanesLayer(const BuildContext& context, const Op& op, const OutputPart& part)
      : bit_planes_(context.isa.values->bit_planes),
        channels_(context.model.output(op).channels),
        planes_(static_cast<int>(op.record.planes)) {
    kernel_ = std::string("bit_planes__") + context.isa.name;
    bind_operand(context, op, part, 0, &input_);
    for (int plane = 0; plane < planes_; ++plane)
      bind_output(context, op.record.bits_output + plane, part, &outputs_[plane]);
    split_pixels(context, op, part, elements_of(context, op, part) * 0.1);
  }

  void run_range(int begin, int end, const Stop& stop) override {
    const int block = std::max(1, kBlockElements / channels_);
    for (int first = begin; first < end && !stop(); first += block)
      bit_planes_(input_, first, std::min(first + block, end), channels_, planes_, outputs_);
  }

 private:
  static constexpr int kBlockElements = 1 << 20;

  decltype(ValueKernels::bit_planes) bit_planes_;
  int channels_, planes_;
  const float* input_ = nullptr;
  uint32_t* outputs_[ops::kMaxPlanes] = {};
};

std::unique_ptr<Layer> make_max_pool_layer(const BuildContext& context, const Op& op,
                                           const OutputPart& part) {
  const bool is_float = context.model.operand(op).dtype == DataType::kF32;
  return (is_float ? make_one<FloatPoolLayer> : make_one<BitPoolLayer>)(context, op, part);
}

std::unique_ptr<Layer> make_elementwise_layer(const BuildContext& context, const Op& op,
                                              const OutputPart& part) {
  const ValueKernels& values = *context.isa.values;
  const DataType dtype = context.model.operand(op).dtype;
  if (dtype == DataType::kBit)
    return std::make_unique<ElementwiseLayer<uint32_t>>(context, op, part, "elementwise_b32__",
                                                        values.elementwise_bits);
  if (dtype == DataType::kU8)
    return std::make_unique<ElementwiseLayer<uint8_t>>(context, op, part, "elementwise_u8__",
                                                       values.elementwise_u8);
  return std::make_unique<ElementwiseLayer<float>>(context, op, part, "elementwise_f32__",
                                                   values.elementwise_f32);
}

}  // namespace

PHONEBIT_LAYERS(kMaxPool2d, make_max_pool_layer)
PHONEBIT_LAYERS(kAveragePool2d, make_one<FloatPoolLayer>)
PHONEBIT_LAYERS(kElementwise, make_elementwise_layer)
PHONEBIT_LAYERS(kBitPlanes, make_one<BitPlanesLayer>)
PHONEBIT_LAYERS(kSoftmax, make_one<SoftmaxLayer>)
PHONEBIT_LAYERS(kLogSoftmax, make_one<SoftmaxLayer>)

}  // namespace phonebit::engine::cpu
