#include <algorithm>
#include <cinttypes>
#include <cstdlib>

#include "loader/loader.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::DataType;
using format::OpKind;
using format::OpRecord;

/// One axis of a sliding window.
struct Axis {
  const char* name;
  int64_t in, kernel, stride, dilation, pad_before, pad_after;

  int64_t span() const { return (kernel - 1) * dilation + 1; }
  int64_t out() const { return (in + pad_before + pad_after - span()) / stride + 1; }
};

/// The minimum n >= 0 with low <= n * step mod modulus <= high, or -1; 1 <= low <= high < modulus. Takes the
/// logarithm of the modulus, like Euclid's algorithm: where no multiple of the step lies between low and
/// high, one must lie between low + k * modulus and high + k * modulus, which is the same question mod the
/// step.
int64_t first_multiple_between(int64_t step, int64_t modulus, int64_t low, int64_t high) {
  step %= modulus;
  if (step == 0) return -1;
  const int64_t n = (low + step - 1) / step;
  if (n * step <= high) return n;
  const auto complement = [step](int64_t value) { return (step - value % step) % step; };
  const int64_t k = first_multiple_between(modulus, step, complement(high), complement(low));
  return k < 0 ? -1 : (low + k * modulus + step - 1) / step;
}

/// Checks one op; every failure is prefixed with where it is.
class OpValidator {
 public:
  OpValidator(const Model& model, size_t index, ContentChecks& checks)
      : model_(model),
        op_(model.ops[index]),
        record_(op_.record),
        where_(describe_op(model, index)),
        checks_(checks) {}

  void run() {
    check_operand_types();
    if (op_.any_output() < 0) fail_damaged("%s: has no output", where_.c_str());
    for (const int32_t output : {record_.value_output, record_.bits_output}) {
      if (output != format::kNone && (output < 0 || static_cast<size_t>(output) >= model_.tensors.size()))
        fail_damaged("%s: output tensor %" PRId32 " does not exist, there are %zu", where_.c_str(), output,
                     model_.tensors.size());
    }
    if (op_.kind == OpKind::kBitPlanes) check_planes();
    check_kind();
    check_unused();
    validate_epilogue(model_, op_, where_);
  }

 private:
  const Tensor& input() const { return model_.operand(op_); }
  bool is_bit() const { return input().dtype == DataType::kBit; }
  const char* where() const { return where_.c_str(); }

  void check_operand_types() const {
    const bool takes_many = op_.traits().takes_many_operands();
    const size_t minimum = takes_many || op_.traits().is_product() ? 2 : 1;
    if (takes_many ? op_.operands.size() < minimum : op_.operands.size() != minimum)
      fail_damaged("%s: %zu operands, expected %zu%s", where(), op_.operands.size(), minimum,
                   takes_many ? " or more" : "");
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const DataType dtype = model_.operand(op_, i).dtype;
      if (!ops::has_type(op_.traits().operands, dtype) || dtype != input().dtype)
        fail_damaged("%s: operand '%s' is %s, which this op does not take%s", where(),
                     model_.operand(op_, i).name.c_str(), name_of(dtype),
                     minimum > 1 ? " (all f32 or all bit)" : "");
    }
  }

  void check_planes() const {
    const int64_t first = record_.bits_output, end = first + record_.planes;
    if (first < 0 || record_.planes < 1 || record_.planes > ops::kMaxPlanes ||
        end > static_cast<int64_t>(model_.tensors.size()))
      fail_damaged("%s: %" PRIu32 " planes from tensor %" PRId64 " on, expected 1 to %" PRIu32
                   " and tensors below %zu",
                   where(), record_.planes, first, ops::kMaxPlanes, model_.tensors.size());
  }

  void check_kind() {
    const Tensor& in = input();
    switch (op_.kind) {
      case OpKind::kBinaryConv2d:
      case OpKind::kConv2d:
        check_window(false);
        return check_conv();
      case OpKind::kBinaryDepthwiseConv2d:
        check_window(false);
        return check_depthwise();
      case OpKind::kMaxPool2d:
      case OpKind::kAveragePool2d:
        check_window(true);
        return expect_shape(axis_h().out(), axis_w().out(), in.channels);
      case OpKind::kElementwise:
      case OpKind::kSoftmax:
      case OpKind::kLogSoftmax:
      case OpKind::kBitPlanes:
        return expect_shape(in.height, in.width, in.channels);
      case OpKind::kResizeBilinear:
      case OpKind::kResizeBilinearCorners:
      case OpKind::kResizeBicubic:
      case OpKind::kResizeBicubicCorners: {
        const Tensor& out = model_.output(op_);
        return expect_shape(out.height, out.width, in.channels);
      }
      case OpKind::kConcat:
        return check_concat();
      case OpKind::kPad:
        return expect_shape(int64_t{in.height} + record_.pad_top + record_.pad_bottom,
                            int64_t{in.width} + record_.pad_left + record_.pad_right, in.channels);
      case OpKind::kReshape:
        return check_reshape();
      case OpKind::kSelectChannels:
        return check_select_channels();
      case OpKind::kMatmul:
      case OpKind::kMatmulTransposed:
        return check_product();
    }
  }

  Axis axis_h() const {
    return {"height",           input().height,  record_.kernel_h,  record_.stride_h,
            record_.dilation_h, record_.pad_top, record_.pad_bottom};
  }
  Axis axis_w() const {
    return {"width",          input().width,    record_.kernel_w, record_.stride_w, record_.dilation_w,
            record_.pad_left, record_.pad_right};
  }

  void check_axis(const Axis& axis) const {
    for (const int64_t extent : {axis.kernel, axis.stride, axis.dilation}) {
      if (extent < 1 || extent > Limits::kExtent)
        fail_damaged("%s: kernel, stride, dilation of the %s are %" PRId64 ", %" PRId64 ", %" PRId64
                     ", each must be 1 to %" PRIu32,
                     where(), axis.name, axis.kernel, axis.stride, axis.dilation, Limits::kExtent);
    }
    if (axis.span() > Limits::kExtent || axis.pad_before >= axis.span() || axis.pad_after >= axis.span())
      fail_damaged("%s: padding %" PRId64 "+%" PRId64
                   " of the %s must be smaller than the dilated kernel of %" PRId64 " (at most %" PRIu32 ")",
                   where(), axis.pad_before, axis.pad_after, axis.name, axis.span(), Limits::kExtent);
    if (axis.in + axis.pad_before + axis.pad_after < axis.span())
      fail_damaged("%s: the window of %" PRId64 " does not fit the padded %s of %" PRId64, where(),
                   axis.span(), axis.name, axis.in + axis.pad_before + axis.pad_after);
  }

  /// Pooling has no value for a window without a tap inside the map. Since padding is smaller than the
  /// window, a window that starts inside the map has its first tap there; one that starts before it has its
  /// first tap at or after the edge at start mod dilation, which a map narrower than the dilation may not
  /// reach.
  void check_every_window_touches(const Axis& axis) const {
    const int64_t starts_before = std::min(axis.out(), (axis.pad_before + axis.stride - 1) / axis.stride);
    const int64_t first = ((-axis.pad_before) % axis.dilation + axis.dilation) % axis.dilation;
    if (starts_before == 0 || axis.in >= axis.dilation) return;
    const int64_t out = first >= axis.in ? 0
                                         : first_multiple_between(axis.stride, axis.dilation, axis.in - first,
                                                                  axis.dilation - 1 - first);
    if (out >= 0 && out < starts_before)
      fail_damaged("%s: the window at %s %" PRId64 " has no tap inside the map", where(), axis.name, out);
  }

  void check_window(bool is_pool) const {
    const Axis h = axis_h();
    const Axis w = axis_w();
    check_axis(h);
    check_axis(w);
    if (h.kernel * w.kernel > Limits::kTaps)
      fail(ErrorCode::format,
           "%s: a window of %" PRId64 "x%" PRId64 " taps is beyond this engine's limit of %" PRId64, where(),
           h.kernel, w.kernel, Limits::kTaps);
    const int64_t padded_pixels = (h.in + h.pad_before + h.pad_after) * (w.in + w.pad_before + w.pad_after);
    if (padded_pixels > Limits::kElements / input().channels)
      fail(ErrorCode::format, "%s: the padded input has more than %" PRId64 " elements, this engine's limit",
           where(), Limits::kElements);
    if (is_pool) {
      check_every_window_touches(h);
      check_every_window_touches(w);
    }
  }

  void expect_shape(int64_t height, int64_t width, int64_t channels) const {
    for (const int output : op_.outputs()) {
      const Tensor& tensor = model_.tensor(output);
      if (tensor.height != height || tensor.width != width || tensor.channels != channels)
        fail_damaged("%s: output '%s' is declared %s, but the op makes %" PRId64 "x%" PRId64 "x%" PRId64,
                     where(), tensor.name.c_str(), tensor.describe().c_str(), height, width, channels);
    }
  }

  void check_conv() const {
    const Tensor& in = input();
    const int64_t out_channels = model_.output(op_).channels;
    expect_shape(axis_h().out(), axis_w().out(), out_channels);
    const int64_t groups = record_.groups;
    if (groups < 1 || in.channels % groups != 0 || out_channels % groups != 0)
      fail_damaged("%s: groups=%" PRId64 " does not divide %d input and %" PRId64 " output channels", where(),
                   groups, in.channels, out_channels);
    const int64_t taps = int64_t{record_.kernel_h} * record_.kernel_w;
    const int64_t group_channels = in.channels / groups;
    const int64_t row_words = (group_channels + 31) / 32;
    // taps <= 2^24, channels <= 2^20: products of two fit, the third factor is divided by.
    if (taps * group_channels > std::min(Limits::kWindow, Limits::kElements / out_channels))
      fail(ErrorCode::format,
           "%s: more than %" PRId64 " weights in all or %" PRId64 " a channel, this engine's limit", where(),
           Limits::kElements, Limits::kWindow);
    const bool is_float = op_.kind == OpKind::kConv2d && in.dtype == DataType::kF32;
    const DataType stored = is_float ? weights_dtype() : DataType::kBit;
    if (stored == DataType::kF32 || stored == DataType::kF16 || stored == DataType::kI8) {
      const Constant& weights = require_constant(model_, record_.weights, stored,
                                                 out_channels * taps * group_channels, where_, "weights");
      if (stored == DataType::kF16) check_halves(weights);
      if (stored == DataType::kI8) check_bytes(weights);
    } else {
      const Constant& weights = require_constant(model_, record_.weights, DataType::kBit,
                                                 out_channels * taps * row_words, where_, "weights");
      check_tails(weights, group_channels, "weights");
    }
    check_pad_value();
    if (in.dtype == DataType::kU8) check_u8_range(taps * group_channels);
  }

  void check_depthwise() const {
    const Tensor& in = input();
    expect_shape(axis_h().out(), axis_w().out(), in.channels);
    const int64_t taps = int64_t{record_.kernel_h} * record_.kernel_w;
    const Constant& weights =
        require_constant(model_, record_.weights, DataType::kBit, taps * in.words(), where_, "weights");
    check_tails(weights, in.channels, "weights");
    check_pad_value();
  }

  DataType weights_dtype() const {
    const int32_t index = record_.weights;
    if (index < 0 || static_cast<size_t>(index) >= model_.constants.size())
      fail_damaged("%s: weights are constant %" PRId32 ", there are %zu", where(), index,
                   model_.constants.size());
    return model_.constant(index).dtype;
  }

  void check_pad_value() const {
    const float value = record_.pad_value;
    const bool is_binary = op_.traits().is_binary();
    if (value != 0.0f && !(is_binary && (value == 1.0f || value == -1.0f)))
      fail_damaged("%s: pad_value is %g, expected %s", where(), static_cast<double>(value),
                   is_binary ? "-1, 0 or 1" : "0");
  }

  /// |sum w (mul x + add)| is largest where all x are 0 or all are 255; int32 accumulators must hold that.
  void check_u8_range(int64_t window) const {
    const int64_t at_0 = std::llabs(record_.input_add);
    const int64_t at_255 = std::llabs(int64_t{255} * record_.input_mul + record_.input_add);
    if (std::max(at_0, at_255) > Limits::kAccumulator / window)
      fail(ErrorCode::format,
           "%s: input_mul %" PRId32 " and input_add %" PRId32 " over a window of %" PRId64
           " values exceed 32-bit accumulators; use a smaller input scale",
           where(), record_.input_mul, record_.input_add, window);
  }

  /// The unused high bits of every packed pixel are zero: kernels count on it.
  void check_tails(const Constant& constant, int64_t channels, const char* what) const {
    const int64_t tail = channels % 32;
    if (tail == 0 || !checks_.is_due(constant, ContentChecks::Kind::tails, channels)) return;
    const uint64_t row_words = static_cast<uint64_t>(channels / 32 + 1);
    const uint32_t unused = ~((1u << tail) - 1);
    for (uint64_t at = row_words - 1; at < constant.count; at += row_words) {
      if ((constant.words()[at] & unused) != 0)
        fail_damaged("%s: %s word %" PRIu64 " has bits beyond the %" PRId64 " channels", where(), what, at,
                     channels);
    }
  }

  /// Infinities and NaNs: exponent bits all set. The converter stores none, and what a NaN's bits become is
  /// each processor's own.
  void check_halves(const Constant& weights) const {
    if (!checks_.is_due(weights, ContentChecks::Kind::halves)) return;
    constexpr uint16_t kExponent = 0x7c00;
    const uint16_t* const end = weights.f16() + weights.count;
    const uint16_t* const bad =
        std::find_if(weights.f16(), end, [](uint16_t half) { return (half & kExponent) == kExponent; });
    if (bad != end)
      fail_damaged("%s: weight %td is infinite or not a number, expected finite f16", where(),
                   bad - weights.f16());
  }

  /// Weights are symmetric, so that kernels may change a weight's sign.
  void check_bytes(const Constant& weights) const {
    if (!checks_.is_due(weights, ContentChecks::Kind::bytes)) return;
    const int8_t* const end = weights.i8() + weights.count;
    const int8_t* const bad = std::find(weights.i8(), end, INT8_MIN);
    if (bad != end)
      fail_damaged("%s: weight %td is -128, expected i8 from -127 to 127", where(), bad - weights.i8());
  }

  void check_concat() const {
    int64_t channels = 0;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const Tensor& operand = model_.operand(op_, i);
      if (operand.height != input().height || operand.width != input().width)
        fail_damaged("%s: operand '%s' is %s, but '%s' is %s; heights and widths must agree", where(),
                     operand.name.c_str(), operand.describe().c_str(), input().name.c_str(),
                     input().describe().c_str());
      channels += operand.channels;
    }
    expect_shape(input().height, input().width, channels);
  }

  void check_product() const {
    const Tensor& factor = model_.operand(op_, 1);
    const bool is_transposed = op_.kind == OpKind::kMatmulTransposed;
    const int64_t groups = record_.groups;
    if (groups < 1 || input().channels % groups != 0 || factor.channels % groups != 0)
      fail_damaged("%s: groups=%" PRId64 " does not divide %d and %d channels", where(), groups,
                   input().channels, factor.channels);
    const int64_t rows = factor.pixels(), columns = factor.channels / groups;
    const int64_t depth = input().channels / groups;
    if ((is_transposed ? columns : rows) != depth)
      fail_damaged("%s: %s by %s in %" PRId64 " groups: sums of %" PRId64 " and of %" PRId64 " products",
                   where(), input().describe().c_str(), factor.describe().c_str(), groups, depth,
                   is_transposed ? columns : rows);
    if (rows * columns > Limits::kFactor)
      fail(ErrorCode::format,
           "%s: the second operand has more than %" PRId64 " elements a group, this engine's limit", where(),
           Limits::kFactor);
    const OpRecord& r = record_;
    const uint32_t any = r.kernel_h | r.kernel_w | r.stride_h | r.stride_w | r.dilation_h | r.dilation_w;
    const uint32_t all = r.kernel_h & r.kernel_w & r.stride_h & r.stride_w & r.dilation_h & r.dilation_w;
    if (any != 1 || all != 1 || (r.pad_top | r.pad_left | r.pad_bottom | r.pad_right) != 0)
      fail_damaged("%s: takes no window", where());
    expect_shape(input().height, input().width, groups * (is_transposed ? rows : columns));
  }

  void check_reshape() const {
    const Tensor& out = model_.output(op_);
    if (out.elements() != input().elements())
      fail_damaged("%s: %s cannot become %s, the number of elements differs", where(),
                   input().describe().c_str(), out.describe().c_str());
  }

  void check_select_channels() const {
    const int64_t channels = model_.output(op_).channels;
    expect_shape(input().height, input().width, channels);
    const Constant& indices =
        require_constant(model_, record_.weights, DataType::kI32, channels, where_, "channel indices");
    if (!checks_.is_due(indices, ContentChecks::Kind::indices, input().channels)) return;
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t index = indices.i32()[c];
      if (index < -1 || index >= input().channels)
        fail_damaged("%s: output channel %" PRId64 " is input channel %" PRId32 ", expected -1 (zeros) to %d",
                     where(), c, index, input().channels - 1);
    }
  }

  /// Attributes that the op would ignore must be absent: a file that sets them means something else.
  void check_unused() const {
    if (op_.traits().weights == ops::Weights::none && record_.weights != format::kNone)
      fail_damaged("%s: takes no weights, but refers to constant %" PRId32, where(), record_.weights);
    if (record_.flip_mask == format::kNone) return;
    if (op_.kind != OpKind::kMaxPool2d || !is_bit())
      fail_damaged("%s: takes no flip_mask, but refers to constant %" PRId32, where(), record_.flip_mask);
    const Constant& mask =
        require_constant(model_, record_.flip_mask, DataType::kBit, input().words(), where_, "flip_mask");
    check_tails(mask, input().channels, "flip_mask");
  }

  const Model& model_;
  const Op& op_;
  const OpRecord& record_;
  const std::string where_;
  ContentChecks& checks_;
};

}  // namespace

std::string describe_op(const Model& model, size_t op_index) {
  const Op& op = model.ops[op_index];
  return format_text("op %zu '%s' (%s)", op_index, op.name.c_str(), op.traits().name);
}

const Constant& require_constant(const Model& model, int32_t index, DataType dtype, int64_t count,
                                 const std::string& where, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= model.constants.size())
    fail_damaged("%s: %s are constant %" PRId32 ", there are %zu", where.c_str(), what, index,
                 model.constants.size());
  const Constant& constant = model.constant(index);
  if (constant.dtype != dtype || constant.count != static_cast<uint64_t>(count))
    fail_damaged("%s: %s are %" PRIu64 " x %s, expected %" PRId64 " x %s", where.c_str(), what,
                 constant.count, name_of(constant.dtype), count, name_of(dtype));
  return constant;
}

void validate_op(const Model& model, size_t op_index, ContentChecks& checks) {
  OpValidator(model, op_index, checks).run();
}

}  // namespace phonebit::engine::loader
