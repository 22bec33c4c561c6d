#include "cpu/prepared_conv.h"

#include <type_traits>

#include "analysis/float_weights.h"
#include "select.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

/// Elements of its arrays, and multiply-accumulates a nanosecond.
template <class KernelType, class InputType, class WeightType, int macs_per_ns>
struct Family {
  using Kernel = KernelType;
  using Input = InputType;
  using Weight = WeightType;
  /// Float weights: sums are float32, so there are no integer thresholds.
  static constexpr bool kIsReal = std::is_same_v<Input, float>;
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
    if constexpr (Family::kIsReal)
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
    if constexpr (Family::kIsReal)
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

}  // namespace phonebit::engine::cpu
