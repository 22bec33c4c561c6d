// Grouped convolutions: each group is a convolution of its own on a slice of the channels. Products of two
// activations are such convolutions of the first one; the filters of a group are its part of the second.
//
//   phase 0   cut every input pixel into the groups' slices; of a product, make and pack each group's filters
//   phase 1   let each group's kernel recode its slice
//   phase 2   convolve, each group into memory of its own
//   phase 3   join the groups: packed bits as they are (threshold form), or float32 values, which then go
//             through the layer's epilogue
// An accumulator becomes float32 once, in phase 2, without steps, so the result is that of an ungrouped
// kernel.
#include <memory>
#include <type_traits>
#include <vector>

#include "analysis/conv_shape.h"
#include "analysis/float_weights.h"
#include "cpu/group_slices.h"
#include "cpu/part_slots.h"
#include "cpu/prepared_conv.h"
#include "types/fail.h"

namespace phonebit::engine::cpu {
namespace {

using format::DataType;
using loader::Op;

class GroupedConvLayer final : public Layer {
 public:
  /// `weights`: null for a product.
  GroupedConvLayer(const BuildContext& context, const Op& op, const OutputPart& part,
                   const std::byte* weights, size_t group_bytes, const int32_t* thresholds)
      : binding_(context, op, part),
        input_type_(context.model.operand(op).dtype),
        shape_(conv_shape(context, op, part)),
        groups_(static_cast<int>(op.record.groups)),
        is_product_(op.traits().is_product()),
        is_transposed_(op.kind == format::OpKind::kMatmulTransposed),
        values_(context.isa.values) {
    ConvShape group_shape = shape_;
    group_shape.in_c /= groups_;
    group_shape.out_c /= groups_;
    const BuildContext of_convs{context.model,    context.isa,    context.threads,
                                context.slots,    context.budget, is_product_ ? factors_ : context.packing,
                                context.precision};
    for (int group = 0; group < groups_; ++group) {
      const int32_t* limits = thresholds == nullptr ? nullptr : thresholds + group * group_shape.out_c;
      convs_.push_back(prepare_conv(of_convs, group_shape, input_type_, DataType::kF32));
      if (!is_product_)
        convs_.back()->add_packing(context, weights + static_cast<size_t>(group) * group_bytes, limits);
    }
    kernel_ = format_text("%s, %d groups", convs_[0]->name(), groups_);
    if (is_product_) {  // its operands' rows are all read, but not all of the first one's by a part
      context.slots.bind(op.operands[0], &input_, offset_in(context.model.operand(op), part.row_begin, 0));
      context.slots.bind(op.operands[1], &factor_);
    } else {
      bind_operand(context, op, part, 0, &input_);
    }
    lay_out();
    cut_work(conv_macs(group_shape) * groups_ / convs_[0]->macs_per_ns(), context.threads);
  }

  size_t packed_bytes() const override { return convs_[0]->packed_bytes() * convs_.size(); }
  size_t scratch_bytes() const override {
    return filters_at_ + static_cast<size_t>(groups_) * filters_stride_;
  }
  void set_scratch(std::byte* scratch) override { scratch_ = scratch; }
  int phases() const override { return 4; }

  int parts(int phase) const override {
    switch (phase) {
      case 0:
        return cut_.parts + (is_product_ ? groups_ : 0);
      case 1:
        return rows_.total > 0 ? rows_.parts * groups_ : 0;
      case 2:
        return ranges_.parts() * groups_;
      default:
        return join_.parts;
    }
  }

  void run(int phase, int part, const Stop& stop) override {
    switch (phase) {
      case 0:
        if (part >= cut_.parts) return pack_factor(part - cut_.parts);
        return cut(cut_.begin(part), cut_.end(part));
      case 1: {
        const int group = part / rows_.parts;
        const int rows = part % rows_.parts;
        return convs_[static_cast<size_t>(group)]->prepare(slice(group), kernel_scratch(group),
                                                           rows_.begin(rows), rows_.end(rows));
      }
      case 2:
        return convolve(part / ranges_.parts(), ranges_.range(part % ranges_.parts()));
      default:
        return is_threshold() ? join_bits(join_.begin(part), join_.end(part))
                              : join_values(join_.begin(part), join_.end(part), stop);
    }
  }

 private:
  bool is_threshold() const { return binding_.has_integer_threshold(); }
  int in_pixels() const { return shape_.in_h * shape_.in_w; }
  int out_pixels() const { return shape_.out_h * shape_.out_w; }
  /// Elements, and bytes of one, that so many channels of a pixel take.
  size_t pixel_elements(int channels) const {
    return static_cast<size_t>(input_type_ == DataType::kBit ? words(channels) : channels);
  }
  size_t element_bytes() const { return input_type_ == DataType::kU8 ? 1 : sizeof(float); }
  size_t slice_elements() const { return pixel_elements(shape_.in_c / groups_); }
  /// u32 words or floats that one group writes for one pixel.
  int result_elements() const {
    return is_threshold() ? words(shape_.out_c / groups_) : shape_.out_c / groups_;
  }
  size_t values_bytes() const {
    return is_threshold()
               ? 0
               : static_cast<size_t>(out_pixels()) * static_cast<size_t>(shape_.out_c) * sizeof(float);
  }

  std::byte* slice(int group) const { return scratch_ + static_cast<size_t>(group) * slice_stride_; }
  std::byte* kernel_scratch(int group) const {
    return scratch_ + kernel_at_ + static_cast<size_t>(group) * kernel_stride_;
  }
  std::byte* result(int group) const {
    return scratch_ + result_at_ + static_cast<size_t>(group) * result_stride_;
  }
  float* values() const { return reinterpret_cast<float*>(scratch_ + values_at_); }

  /// Places the arrays in the scratch memory.
  void lay_out() {
    const auto count = static_cast<size_t>(groups_);
    slice_stride_ = align_up(static_cast<size_t>(in_pixels()) * slice_elements() * element_bytes());
    kernel_at_ = count * slice_stride_;
    kernel_stride_ = align_up(convs_[0]->scratch_bytes());
    result_at_ = kernel_at_ + count * kernel_stride_;
    result_stride_ = align_up(static_cast<size_t>(out_pixels()) * static_cast<size_t>(result_elements()) * 4);
    values_at_ = result_at_ + count * result_stride_;
    filters_at_ = align_up(values_at_ + values_bytes());
    const size_t filters = static_cast<size_t>(shape_.out_c / groups_) * slice_elements();
    filters_stride_ = is_product_ ? align_up(filters * element_bytes()) : 0;
  }

  void cut_work(double work_ns, int threads) {
    const double cut_ns = copy_ns(2.0 * static_cast<double>(kernel_at_));
    const double group_prepare_ns = copy_ns(2.0 * static_cast<double>(kernel_stride_));
    const double join_ns = copy_ns(2.0 * static_cast<double>(values_at_ - result_at_ + values_bytes()));
    cut_ = make_split(in_pixels(), 1, cut_ns, threads);
    join_ = make_split(out_pixels(), 1, join_ns, threads);
    // The groups are parts already; they are divided further only when they are fewer than the threads.
    const int inner_threads = groups_ >= threads ? 1 : threads;
    rows_ = make_split(convs_[0]->prepare_rows(), 1, group_prepare_ns, inner_threads);
    ranges_ = split_output(convs_[0]->shape(), convs_[0]->pixel_tile(), convs_[0]->block_tile(),
                           convs_[0]->packed_bytes(), slice_stride_, work_ns / groups_, inner_threads);
  }

  void cut(int pixel_begin, int pixel_end) {
    for (int group = 0; group < groups_; ++group)
      cut_group(input_, group, pixel_begin, pixel_end, slice(group));
  }

  /// Copies a group's channels of some pixels, each to where it lies among all of them.
  void cut_group(const std::byte* from, int group, int pixel_begin, int pixel_end, std::byte* to) const {
    const auto cut_elements = [&](const auto* elements) {
      using Element = std::remove_const_t<std::remove_pointer_t<decltype(elements)>>;
      const size_t stride = pixel_elements(shape_.in_c), first = static_cast<size_t>(pixel_begin);
      cut_slice(PixelRow<const Element>{elements + first * stride, stride}, group * (shape_.in_c / groups_),
                shape_.in_c / groups_, pixel_end - pixel_begin,
                {reinterpret_cast<Element*>(to) + first * slice_elements(), slice_elements()});
    };
    switch (input_type_) {
      case DataType::kBit:
        return cut_elements(reinterpret_cast<const uint32_t*>(from));
      case DataType::kU8:
        return cut_elements(reinterpret_cast<const uint8_t*>(from));
      default:
        return cut_elements(reinterpret_cast<const float*>(from));
    }
  }

  /// Makes one group's filters, [n][k], of the second operand and packs them.
  void pack_factor(int group) {
    const int depth = shape_.in_c / groups_, filters = shape_.out_c / groups_;
    std::byte* const made = scratch_ + filters_at_ + static_cast<size_t>(group) * filters_stride_;
    if (is_transposed_) {
      cut_group(factor_, group, 0, filters, made);
    } else {  // of values only: a word of bits holds several filters
      auto* const values = reinterpret_cast<float*>(made);
      const auto* from = reinterpret_cast<const float*>(factor_) + group * filters;
      for (int k = 0; k < depth; ++k, from += shape_.out_c)
        for (int n = 0; n < filters; ++n)
          values[static_cast<size_t>(n) * static_cast<size_t>(depth) + static_cast<size_t>(k)] = from[n];
    }
    convs_[static_cast<size_t>(group)]->pack(made, nullptr);
  }

  void convolve(int group, const OutputRange& range) {
    Epilogue plain{};
    plain.channels = plain.pixel_channels = shape_.out_c / groups_;
    if (!is_threshold()) plain.value = reinterpret_cast<float*>(result(group));
    uint32_t* const bits = is_threshold() ? reinterpret_cast<uint32_t*>(result(group)) : nullptr;
    convs_[static_cast<size_t>(group)]->run(slice(group), kernel_scratch(group), range,
                                            {bits, words(plain.channels), &plain});
  }

  void join_bits(int pixel_begin, int pixel_end) {
    const AccumulatorSink output = binding_.accumulator_sink();
    const int channels = shape_.out_c / groups_;
    const auto stride = static_cast<size_t>(words(channels));
    const auto output_stride = static_cast<size_t>(output.pixel_words);
    const auto first = static_cast<size_t>(pixel_begin);
    const auto* bits = reinterpret_cast<const uint32_t*>(result(0)) + first * stride;
    join_slices({bits, stride}, result_stride_ / sizeof(uint32_t), groups_, channels, pixel_end - pixel_begin,
                {output.threshold_bits + first * output_stride, output_stride});
  }

  void join_values(int pixel_begin, int pixel_end, const Stop& stop) {
    const int channels = shape_.out_c / groups_;
    const auto group_stride = static_cast<size_t>(channels), stride = static_cast<size_t>(shape_.out_c);
    const auto first = static_cast<size_t>(pixel_begin);
    for (int group = 0; group < groups_; ++group) {
      const auto* source = reinterpret_cast<const float*>(result(group)) + first * group_stride;
      join_slice({source, group_stride}, group * channels, channels, pixel_end - pixel_begin,
                 {values() + first * stride, stride});
    }
    values_->elementwise_f32(values(), pixel_begin, pixel_end, binding_.epilogue(), stop);
  }

  EpilogueBinding binding_;
  DataType input_type_;
  ConvShape shape_;
  int groups_;
  bool is_product_, is_transposed_;
  const ValueKernels* values_;
  PackingList factors_;  // of a product: each image's, so not shared as weights are
  std::vector<std::unique_ptr<PreparedConv>> convs_;
  const std::byte* input_ = nullptr;
  const std::byte* factor_ = nullptr;
  std::byte* scratch_ = nullptr;
  size_t slice_stride_ = 0;
  size_t kernel_at_ = 0;
  size_t kernel_stride_ = 0;
  size_t result_at_ = 0;
  size_t result_stride_ = 0;
  size_t values_at_ = 0;
  size_t filters_at_ = 0;
  size_t filters_stride_ = 0;
  Split cut_;
  Split rows_;
  RangeSplit ranges_;
  Split join_;
};

std::unique_ptr<Layer> make_product_layer(const BuildContext& context, const Op& op, const OutputPart& part) {
  return std::make_unique<GroupedConvLayer>(context, op, part, nullptr, 0, nullptr);
}

}  // namespace

PHONEBIT_LAYERS(kMatmul, make_product_layer)
PHONEBIT_LAYERS(kMatmulTransposed, make_product_layer)

std::unique_ptr<Layer> make_grouped_conv_layer(const BuildContext& context, const Op& op,
                                               const OutputPart& part) {
  const int32_t* thresholds = context.packing.keep(analysis::integer_thresholds(context.model, op));
  const loader::Constant& constant = context.model.constant(op.record.weights);
  const std::byte* weights = constant.data;
  size_t bytes = constant.bytes();
  if (context.model.operand(op).dtype == DataType::kF32) {
    weights = reinterpret_cast<const std::byte*>(float_weights(context, op));
    bytes = analysis::weight_count(context.model, op) * sizeof(float);
  }
  return std::make_unique<GroupedConvLayer>(context, op, part, weights, bytes / op.record.groups, thresholds);
}

}  // namespace phonebit::engine::cpu
