// Convolutions without groups, of packed bits, of u8 pixels and of float32 values: kernel, packed weights, layer.
#include <type_traits>

#include "analysis/conv_shape.h"
#include "analysis/float_weights.h"
#include "cpu/part_slots.h"
#include "cpu/prepared_conv.h"
#include "select.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

/// Elements of its arrays, and multiply-accumulates per nanosecond.
template <class KernelType, class InputType, class WeightType, int macs_per_ns>
struct Family {
  using Kernel = KernelType;
  using Input = InputType;
  using Weight = WeightType;
  /// Float weights: sums are float32, so there are no integer thresholds.
  static constexpr bool kIsFloat = std::is_same_v<Input, float>;
  static constexpr double kMacsPerNs = macs_per_ns;
};

using BinaryFamily = Family<BinaryConvKernel, uint32_t, uint32_t, 1000>;
using U8Family = Family<U8ConvKernel, uint8_t, uint32_t, 200>;
// Weights stay in memory as they are.
using F32Family = Family<F32ConvKernel, float, float, 40>;
using F16Family = Family<F16ConvKernel, float, uint16_t, 40>;
using W8Family = Family<W8ConvKernel, float, int8_t, 40>;

/// The first kernel of a list that supports the shape; the last one supports all.
template <class Kernel>
const Kernel& choose_kernel(const Kernel* const* list, const ConvShape& shape) {
  while (list[1] != nullptr && !(*list)->supports(shape)) ++list;
  return **list;
}

/// Two binary convolutions that a kernel computes at once, with the weights that both have packed.
class PlanesConv final : public PreparedConv {
 public:
  struct Plane {
    const ConvShape& shape;
    const std::byte* packed;
    size_t packed_bytes;
  };

  PlanesConv(const BuildContext& context, const Op& op, const BinaryConvKernel& kernel, const Facts& facts,
             const Plane& low, const Plane& high)
      : PreparedConv(context, low.shape, facts),
        kernel_(kernel),
        shapes_{low.shape, high.shape},
        packed_planes_{low.packed, high.packed},
        packed_bytes_(low.packed_bytes) {
    context.slots.bind(op.operands[0], &low_);
  }

  size_t packed_bytes() const override { return packed_bytes_; }
  void pack(const void* /*weights*/, const int32_t* /*thresholds*/) const override {}
  void prepare(const void* input, std::byte* scratch, int row_begin, int row_end) const override {
    const uint32_t* const inputs[2] = {low_, static_cast<const uint32_t*>(input)};
    if (kernel_.planes->prepare_input != nullptr)
      return kernel_.planes->prepare_input(shapes_, inputs, scratch, row_begin, row_end);
    for (int plane = 0; plane < 2; ++plane, scratch += kernel_.scratch_bytes(shape_))
      kernel_.prepare_input(shapes_[plane], inputs[plane], scratch, row_begin, row_end);
  }
  void run(const void* input, const std::byte* scratch, const OutputRange& range,
           const AccumulatorSink& sink) const override {
    const uint32_t* const inputs[2] = {low_, static_cast<const uint32_t*>(input)};
    kernel_.planes->run(shape_, packed_planes_, inputs, scratch, range, *sink.epilogue);
  }

 private:
  const BinaryConvKernel& kernel_;
  const ConvShape shapes_[2];
  const void* const packed_planes_[2];
  const size_t packed_bytes_;
  const uint32_t* low_ = nullptr;
};

template <class Family>
class ConvOf final : public PreparedConv {
 public:
  using Kernel = typename Family::Kernel;

  ConvOf(const BuildContext& context, const ConvShape& shape, const Kernel& kernel, int pixel_tile,
         int block_tile = 1)
      : PreparedConv(context, shape,
                     {kernel.name, pixel_tile, block_tile, kernel.prepare_rows(shape),
                      kernel.packed_bytes(shape), kernel.scratch_bytes(shape), Family::kMacsPerNs}),
        kernel_(kernel) {}

  std::unique_ptr<PreparedConv> with_plane([[maybe_unused]] const BuildContext& context,
                                           [[maybe_unused]] const Op& op,
                                           [[maybe_unused]] const PreparedConv& high) const override {
    if constexpr (kHavePlanesKernels && std::is_same_v<Kernel, BinaryConvKernel>) {
      if (kernel_.planes == nullptr || !kernel_.planes->supports(shape_)) return nullptr;
      Facts facts = facts_;
      facts.packed_bytes = 0;
      facts.scratch_bytes *= kernel_.planes->prepare_input != nullptr ? 1 : 2;
      facts.macs_per_ns /= 2;
      const auto& other = static_cast<const ConvOf&>(high);
      return std::make_unique<PlanesConv>(context, op, kernel_, facts,
                                          PlanesConv::Plane{shape_, packed_, facts_.packed_bytes},
                                          PlanesConv::Plane{other.shape_, other.packed_, 0});
    } else {
      return nullptr;
    }
  }
  void pack(const void* weights, [[maybe_unused]] const int32_t* thresholds) const override {
    const auto* const own = static_cast<const typename Family::Weight*>(weights);
    if constexpr (Family::kIsFloat)
      kernel_.pack_weights(shape_, own, packed_);
    else
      kernel_.pack_weights(shape_, own, thresholds, packed_);
  }
  void prepare(const void* input, std::byte* scratch, int row_begin, int row_end) const override {
    kernel_.prepare_input(shape_, static_cast<const Input*>(input), scratch, row_begin, row_end);
  }
  void run(const void* input, const std::byte* scratch, const OutputRange& range,
           const AccumulatorSink& sink) const override {
    const auto* const own = static_cast<const Input*>(input);
    if constexpr (Family::kIsFloat)
      kernel_.run(shape_, packed_, own, scratch, range, *sink.epilogue);
    else
      kernel_.run(shape_, packed_, own, scratch, range, sink);
  }

 private:
  using Input = typename Family::Input;

  const Kernel& kernel_;
};

template <class Family>
std::unique_ptr<PreparedConv> make_conv(const BuildContext& context, const ConvShape& shape,
                                        const typename Family::Kernel& kernel) {
  return std::make_unique<ConvOf<Family>>(context, shape, kernel, kernel.pixel_tile);
}

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

void PreparedConv::add_packing(const BuildContext& context, const void* weights,
                               const int32_t* thresholds) const {
  context.packing.add([this, weights, thresholds] { pack(weights, thresholds); });
}

std::unique_ptr<PreparedConv> prepare_conv(const BuildContext& context, const ConvShape& shape,
                                           DataType input, DataType weights) {
  const Isa& isa = context.isa;
  if (input == DataType::kBit) {
    const auto choose = [&](int threads) -> const BinaryConvRow& {
      return choose_binary_conv(isa.binary_conv, shape, this_processor(threads));
    };
    const BinaryConvRow& row = choose(context.threads);
    if (&row != &choose(1)) context.packing.set_for_many_threads();
    return std::make_unique<ConvOf<BinaryFamily>>(context, shape, *row.code, row.pixel_tile, row.block_tile);
  }
  if (input == DataType::kU8) return make_conv<U8Family>(context, shape, choose_kernel(isa.u8_conv, shape));
  if (weights == DataType::kI8) return make_conv<W8Family>(context, shape, isa.values->w8_conv);
  if (weights == DataType::kF16) return make_conv<F16Family>(context, shape, isa.values->f16_conv);
  return make_conv<F32Family>(context, shape, isa.values->f32_conv);
}

RangeSplit split_output(const ConvShape& shape, int pixel_tile, int block_tile, size_t weight_bytes,
                        size_t input_bytes, double work_ns, int threads) {
  const int pixels = shape.out_h * shape.out_w;
  const int blocks = (shape.out_c + kChannelBlock - 1) / kChannelBlock;
  if (work_ns / pixels / blocks * pixel_tile > kLargestPartNs) pixel_tile = 1;
  const int tiles = (pixels + pixel_tile - 1) / pixel_tile;
  const int parts = part_count(work_ns, threads);
  const bool blocks_first = weight_bytes > input_bytes;
  const int block_tiles = (blocks + block_tile - 1) / block_tile;
  const int first_units = blocks_first ? block_tiles : tiles;
  const int second_units = blocks_first ? tiles : block_tiles;
  const int first = std::min(parts, first_units);
  const int second = std::min((parts + first - 1) / first, second_units);
  return {{pixels, pixel_tile, blocks_first ? second : first},
          {blocks, block_tile, blocks_first ? first : second}};
}

double conv_macs(const ConvShape& shape) {
  return 1.0 * shape.out_h * shape.out_w * shape.out_c * shape.kernel_h * shape.kernel_w * shape.in_c;
}

const float* float_weights(const BuildContext& context, const loader::Op& op) {
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

PHONEBIT_LAYERS(kBinaryConv2d, make_conv_layer)
PHONEBIT_LAYERS(kConv2d, make_conv_layer)

}  // namespace phonebit::engine::cpu
