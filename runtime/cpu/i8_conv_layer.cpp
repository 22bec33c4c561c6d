// Convolutions of float32 values in 8-bit integers, without groups.
//
//   phase 0   find the largest magnitude of the input (quantized arithmetic only)
//   phase 1   turn the input into bytes
//   phase 2   convolve
//
// A part of some rows quantizes by the rows that it reads, so in quantized arithmetic the cut shows in the
// last bits; in exact arithmetic it does not.
#include <array>
#include <cmath>

#include "analysis/float_weights.h"
#include "cpu/i8_arithmetic.h"
#include "cpu/part_slots.h"
#include "cpu/prepared_conv.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

constexpr float kLargestByte = 127.0f;
/// Below this 127 / largest would not be finite; the image counts as zeros.
constexpr float kSmallestRange = 0x1p-100f;
/// Multiply-accumulates a nanosecond, to decide how to split work.
constexpr double kMacsPerNs = 150.0;
constexpr int kMaxMaxima = 256;

/// Each filter's largest weight becomes 127 or -127: the converter's rule (quantize_float_weights.py), in its
/// arithmetic.
void quantize_filters(const float* weights, size_t filters, size_t taps, int8_t* bytes, float* scales) {
  for (size_t filter = 0; filter < filters; ++filter) {
    float largest = 0.0f;
    for (size_t i = 0; i < taps; ++i) largest = std::max(largest, std::fabs(weights[i]));
    scales[filter] = largest > 0.0f ? static_cast<float>(double{largest} / kLargestByte) : 1.0f;
    for (size_t i = 0; i < taps; ++i) {
      const double units = std::nearbyint(double{weights[i]} / double{scales[filter]});
      *bytes++ = static_cast<int8_t>(std::clamp<double>(units, -kLargestByte, kLargestByte));
    }
    weights += taps;
  }
}

class I8ConvLayer final : public Layer {
 public:
  I8ConvLayer(const BuildContext& context, const Op& op, const OutputPart& part, bool is_exact)
      : binding_(context, op, part), conv_(*context.isa.i8_conv), shape_(conv_shape(context, op, part)) {
    kernel_ = conv_.name;
    bind_operand(context, op, part, 0, &input_);
    add_packing(context, op, part);
    const int elements = shape_.in_h * shape_.in_w * shape_.in_c;
    const double read_ns = copy_ns(static_cast<double>(elements) * sizeof(float));
    if (!is_exact) {
      maxima_ = make_split(elements, kMaximaGrain, read_ns, context.threads);
      maxima_.parts = std::min(maxima_.parts, kMaxMaxima);
    }
    rows_ = make_split(conv_.prepare_rows(shape_), 1, 2 * read_ns, context.threads);
    const double work_ns =
        conv_macs(shape_) / kMacsPerNs + elements_of(context, op, part) * epilogue_ns_per_element(op);
    ranges_ = split_output(shape_, conv_.pixel_tile, 1, packed_bytes(), conv_.scratch_bytes(shape_), work_ns,
                           context.threads);
  }

  size_t packed_bytes() const override { return conv_.packed_bytes(shape_); }
  size_t scratch_bytes() const override { return conv_.scratch_bytes(shape_); }
  void set_scratch(std::byte* scratch) override { scratch_ = scratch; }
  int phases() const override { return 3; }
  int parts(int phase) const override {
    switch (phase) {
      case 0:
        return maxima_.total > 0 ? maxima_.parts : 0;
      case 1:
        return rows_.parts;
      default:
        return ranges_.parts();
    }
  }
  void run(int phase, int part, const Stop& /*stop*/) override {
    switch (phase) {
      case 0: {
        const int begin = maxima_.begin(part);
        const auto count = static_cast<size_t>(maxima_.end(part) - begin);
        largest_[static_cast<size_t>(part)] = conv_.largest(input_ + begin, count);
        return;
      }
      case 1:
        return conv_.prepare_input(shape_, input_, multiplier(), scratch_, rows_.begin(part),
                                   rows_.end(part));
      default:
        return conv_.run(shape_, packed_, scale(), scratch_, ranges_.range(part), binding_.epilogue());
    }
  }

 private:
  static constexpr int kMaximaGrain = 1024;

  void add_packing(const BuildContext& context, const Op& op, const OutputPart& part) {
    packed_ = context.packing.memory(context.budget, packed_bytes());
    const loader::Constant& stored = context.model.constant(op.record.weights);
    const size_t taps = static_cast<size_t>(shape_.kernel_h) * static_cast<size_t>(shape_.kernel_w) *
                        static_cast<size_t>(shape_.in_c);
    const size_t first = static_cast<size_t>(part.channel_begin) * taps;
    if (stored.dtype == DataType::kI8) {
      context.packing.add(
          [this, weights = stored.i8() + first] { conv_.pack_weights(shape_, weights, nullptr, packed_); });
      return;
    }
    const auto filters = static_cast<size_t>(shape_.out_c);
    const size_t bytes = filters * (sizeof(float) + taps);
    context.budget.take(bytes, "quantized weights");
    float* const scales = context.packing.keep(memory::AlignedBuffer(bytes, "quantized weights"));
    auto* const weights = reinterpret_cast<int8_t*>(scales + filters);
    const float* const values = float_weights(context, op) + first;
    context.packing.add([this, values, filters, taps, weights, scales] {
      quantize_filters(values, filters, taps, weights, scales);
      conv_.pack_weights(shape_, weights, scales, packed_);
    });
  }

  /// Of the part's input; 127 where values are integers already, so that scale and multiplier are 1.
  float range() const {
    if (maxima_.total == 0) return kLargestByte;
    return *std::max_element(largest_.begin(), largest_.begin() + maxima_.parts);
  }
  float multiplier() const {
    const float largest = range();
    return largest >= kSmallestRange ? kLargestByte / largest : 0.0f;
  }
  float scale() const { return range() / kLargestByte; }

  EpilogueBinding binding_;
  const I8ConvKernel& conv_;
  ConvShape shape_;
  std::byte* packed_ = nullptr;
  const float* input_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::array<float, kMaxMaxima> largest_{};
  Split maxima_;
  Split rows_;
  RangeSplit ranges_;
};

}  // namespace

std::unique_ptr<Layer> make_i8_conv_layer(const BuildContext& context, const Op& op, const OutputPart& part) {
  const I8Arithmetic arithmetic = i8_arithmetic(context.model, op, context.precision);
  if (arithmetic == I8Arithmetic::none) return nullptr;
  return std::make_unique<I8ConvLayer>(context, op, part, arithmetic == I8Arithmetic::exact);
}

}  // namespace phonebit::engine::cpu
