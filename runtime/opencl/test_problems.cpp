#include "opencl/test_problems.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "fail.h"
#include "opencl/random_content.h"

namespace phonebit::opencl {

using format::DataType;
using format::OpKind;
using format::StepKind;
using format::ThresholdKind;
using loader::Op;

/// Puts a one-op model together. Sizes avoid multiples of tiles, so that every edge of a kernel is reached.
class ProblemBuilder {
 public:
  ProblemBuilder(OpKind kind, std::string description) : random_(1234) {
    problem_->description = std::move(description);
    op_.name = "self-test";
    op_.kind = kind;
    op_.record = {};
    op_.record.kind = static_cast<uint32_t>(kind);
    op_.record.value_output = op_.record.bits_output = op_.record.weights = format::kNone;
    op_.record.threshold = op_.record.flip_mask = format::kNone;
    op_.record.groups = 1;
    op_.record.stride_h = op_.record.stride_w = op_.record.dilation_h = op_.record.dilation_w = 1;
  }

  int tensor(const char* name, DataType dtype, int height, int width, int channels) {
    problem_->model.tensors.push_back({name, dtype, height, width, channels});
    return static_cast<int>(problem_->model.tensors.size()) - 1;
  }
  ProblemBuilder& operand(DataType dtype, int height, int width, int channels) {
    op_.operands.push_back(tensor("operand", dtype, height, width, channels));
    return *this;
  }
  ProblemBuilder& window(int kernel_h, int kernel_w, int stride, int dilation, int pad, float pad_value) {
    format::OpRecord& r = op_.record;
    r.kernel_h = static_cast<uint32_t>(kernel_h);
    r.kernel_w = static_cast<uint32_t>(kernel_w);
    r.stride_h = r.stride_w = static_cast<uint32_t>(stride);
    r.dilation_h = r.dilation_w = static_cast<uint32_t>(dilation);
    r.pad_top = r.pad_left = r.pad_bottom = r.pad_right = static_cast<uint32_t>(pad);
    r.pad_value = pad_value;
    return *this;
  }
  ProblemBuilder& groups(int count) {
    op_.record.groups = static_cast<uint32_t>(count);
    return *this;
  }
  ProblemBuilder& u8_input(int mul, int add) {
    op_.record.input_mul = mul;
    op_.record.input_add = add;
    return *this;
  }
  /// Rows of `channels` random bits.
  int bits(size_t rows, int channels) {
    std::vector<uint32_t>& words =
        new_constant(DataType::kBit, rows * static_cast<size_t>((channels + 31) / 32));
    const auto row_words = static_cast<size_t>((channels + 31) / 32);
    for (size_t i = 0; i < words.size(); ++i) {
      const bool is_last = i % row_words == row_words - 1 && channels % 32 != 0;
      words[i] = static_cast<uint32_t>(random_()) & (is_last ? (1u << (channels % 32)) - 1 : ~0u);
    }
    return last_constant();
  }
  /// Multiples of 1/8.
  int floats(size_t count, int reach) {
    std::vector<uint32_t>& words = new_constant(DataType::kF32, count);
    for (uint32_t& word : words) {
      const float value = static_cast<float>(between(-reach, reach)) / 8;
      std::memcpy(&word, &value, sizeof word);
    }
    return last_constant();
  }
  int integers(size_t count, int reach) {
    std::vector<uint32_t>& words = new_constant(DataType::kI32, count);
    for (uint32_t& word : words) word = static_cast<uint32_t>(between(-reach, reach));
    return last_constant();
  }
  /// Channels of the operand, or -1.
  int channel_indices(size_t count) {
    std::vector<uint32_t>& words = new_constant(DataType::kI32, count);
    for (uint32_t& word : words) word = static_cast<uint32_t>(between(-1, input().channels - 1));
    return last_constant();
  }
  ProblemBuilder& weights(int constant) {
    op_.record.weights = constant;
    return *this;
  }
  ProblemBuilder& flip_mask(int constant) {
    op_.record.flip_mask = constant;
    return *this;
  }
  const loader::Tensor& input() const { return problem_->model.operand(op_); }
  int channels_per_group() const { return input().channels / static_cast<int>(op_.record.groups); }

  /// Bits by integer thresholds of that reach.
  std::unique_ptr<TestProblem> with_thresholds(int channels, int reach) {
    const auto [height, width] = output_map();
    op_.record.bits_output = tensor("bits", DataType::kBit, height, width, channels);
    op_.record.threshold_kind = static_cast<uint32_t>(ThresholdKind::kI32);
    op_.record.threshold = integers(static_cast<size_t>(channels), reach);
    return finish();
  }
  /// A first step of its own.
  ProblemBuilder& round() {
    add_step(StepKind::kRound, -1, -1, -1);
    return *this;
  }
  /// Scale, bias, shortcut, clamp; values and bits out.
  std::unique_ptr<TestProblem> with_epilogue(int channels) {
    const auto [height, width] = output_map();
    const auto count = static_cast<size_t>(channels);
    op_.record.value_output = tensor("values", DataType::kF32, height, width, channels);
    op_.record.bits_output = tensor("bits", DataType::kBit, height, width, channels);
    const int shortcut = tensor("shortcut", DataType::kF32, height, width, channels);
    add_step(StepKind::kScaleBias, -1, floats(count, 8), floats(count, 32));
    add_step(StepKind::kAdd, shortcut, -1, -1);
    add_step(StepKind::kPrelu, -1, floats(count, 8), -1);
    add_step(StepKind::kPrelu, -1, floats(count, 8), floats(count, 8));
    add_step(StepKind::kClamp, -1, -1, -1);
    op_.steps.back().value_a = -20.0f;
    op_.steps.back().value_b = std::numeric_limits<float>::infinity();
    op_.record.threshold_kind = static_cast<uint32_t>(ThresholdKind::kF32);
    op_.record.threshold = floats(count, 16);
    return finish();
  }
  std::unique_ptr<TestProblem> with_values(int height, int width, int channels) {
    op_.record.value_output = tensor("values", DataType::kF32, height, width, channels);
    return finish();
  }
  std::unique_ptr<TestProblem> with_bits(int height, int width, int channels) {
    op_.record.bits_output = tensor("bits", DataType::kBit, height, width, channels);
    return finish();
  }
  std::pair<int, int> output_map() const {
    const format::OpRecord& r = op_.record;
    if (r.kernel_h == 0) return {input().height, input().width};
    const auto size = [](int in, uint32_t pad, uint32_t kernel, uint32_t stride, uint32_t dilation) {
      return (in + 2 * static_cast<int>(pad) - static_cast<int>((kernel - 1) * dilation + 1)) /
                 static_cast<int>(stride) +
             1;
    };
    return {size(input().height, r.pad_top, r.kernel_h, r.stride_h, r.dilation_h),
            size(input().width, r.pad_left, r.kernel_w, r.stride_w, r.dilation_w)};
  }

 private:
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  std::vector<uint32_t>& new_constant(DataType dtype, size_t count) {
    problem_->memory_.emplace_back(count);
    std::vector<uint32_t>& words = problem_->memory_.back();
    problem_->model.constants.push_back({dtype, count, reinterpret_cast<const std::byte*>(words.data())});
    return words;
  }
  int last_constant() const { return static_cast<int>(problem_->model.constants.size()) - 1; }
  void add_step(StepKind kind, int tensor, int a, int b) {
    format::StepRecord step{};
    step.kind = static_cast<uint32_t>(kind);
    step.tensor = tensor;
    step.constant_a = a;
    step.constant_b = b;
    op_.steps.push_back(step);
  }
  std::unique_ptr<TestProblem> finish() {
    problem_->model.ops.push_back(op_);
    return std::move(problem_);
  }

  std::mt19937 random_;
  std::unique_ptr<TestProblem> problem_ = std::make_unique<TestProblem>();
  Op op_;
};

namespace {

using Problems = std::vector<std::unique_ptr<TestProblem>>;

size_t taps(int kernel_h, int kernel_w) {
  return static_cast<size_t>(kernel_h) * static_cast<size_t>(kernel_w);
}

Problems binary_conv_problems() {
  Problems result;
  ProblemBuilder padded(OpKind::kBinaryConv2d, "3x3, 64 -> 40 on 7x9, zero padding, thresholds");
  padded.operand(DataType::kBit, 7, 9, 64).window(3, 3, 1, 1, 1, 0.0f);
  padded.weights(padded.bits(40 * taps(3, 3), 64));
  result.push_back(padded.with_thresholds(40, 24));

  ProblemBuilder wide(OpKind::kBinaryConv2d, "3x3 stride 2, 128 -> 48 on 9x8, padding +1, epilogue");
  wide.operand(DataType::kBit, 9, 8, 128).window(3, 3, 2, 1, 1, 1.0f);
  wide.weights(wide.bits(48 * taps(3, 3), 128));
  result.push_back(wide.with_epilogue(48));

  ProblemBuilder dense(OpKind::kBinaryConv2d, "dense, 4x5x96 -> 75, thresholds");
  dense.operand(DataType::kBit, 4, 5, 96).window(4, 5, 1, 1, 0, 0.0f);
  dense.weights(dense.bits(75 * taps(4, 5), 96));
  result.push_back(dense.with_thresholds(75, 44));

  ProblemBuilder pointwise(OpKind::kBinaryConv2d, "1x1, 256 -> 64 on 5x7, epilogue");
  pointwise.operand(DataType::kBit, 5, 7, 256).window(1, 1, 1, 1, 0, 0.0f);
  pointwise.weights(pointwise.bits(64, 256));
  result.push_back(pointwise.with_epilogue(64));

  ProblemBuilder grouped(OpKind::kBinaryConv2d,
                         "3x3 dilated, 3 groups, 93 -> 33 on 8x8, padding -1, thresholds");
  grouped.operand(DataType::kBit, 8, 8, 93).window(3, 3, 1, 2, 2, -1.0f).groups(3);
  grouped.weights(grouped.bits(33 * taps(3, 3), 31));
  result.push_back(grouped.with_thresholds(33, 17));
  return result;
}

Problems binary_depthwise_problems() {
  Problems result;
  for (const float pad_value : {0.0f, 1.0f}) {
    ProblemBuilder problem(OpKind::kBinaryDepthwiseConv2d, "3x3 on 7x6x70");
    problem.operand(DataType::kBit, 7, 6, 70).window(3, 3, 1, 1, 1, pad_value);
    problem.weights(problem.bits(taps(3, 3), 70));
    result.push_back(pad_value == 0.0f ? problem.with_thresholds(70, 3) : problem.with_epilogue(70));
  }
  return result;
}

Problems u8_conv_problems() {
  Problems result;
  for (const bool is_threshold : {true, false}) {
    ProblemBuilder problem(OpKind::kConv2d, "3x3 stride 2 of u8, 3 -> 40 on 10x9, padded");
    problem.operand(DataType::kU8, 10, 9, 3).window(3, 3, 2, 1, 1, 0.0f).u8_input(2, -255);
    problem.weights(problem.bits(40 * taps(3, 3), 3));
    result.push_back(is_threshold ? problem.with_thresholds(40, 255 * 5) : problem.with_epilogue(40));
  }
  return result;
}

std::unique_ptr<TestProblem> float_conv_problem(int channels, int filters, int groups) {
  ProblemBuilder problem(OpKind::kConv2d,
                         format_text("3x3, %d -> %d on 6x9, %d groups", channels, filters, groups));
  problem.operand(DataType::kF32, 6, 9, channels).window(3, 3, 1, 1, 1, 0.0f).groups(groups);
  const auto count = static_cast<size_t>(filters) * taps(3, 3) * static_cast<size_t>(channels / groups);
  problem.weights(problem.floats(count, 8));
  return problem.with_epilogue(filters);
}

Problems float_conv_problems() {
  Problems result;
  result.push_back(float_conv_problem(12, 20, 1));
  result.push_back(float_conv_problem(3, 17, 1));

  // Windows of one run of the map: K below a chunk, and several chunks and a rest.
  ProblemBuilder pointwise(OpKind::kConv2d, "1x1 stride 2, 37 -> 50 on 9x7");
  pointwise.operand(DataType::kF32, 9, 7, 37).window(1, 1, 2, 1, 0, 0.0f);
  pointwise.weights(pointwise.floats(50 * 37, 8));
  result.push_back(pointwise.with_epilogue(50));

  ProblemBuilder dense(OpKind::kConv2d, "dense, 4x5x29 -> 44");
  dense.operand(DataType::kF32, 4, 5, 29).window(4, 5, 1, 1, 0, 0.0f);
  dense.weights(dense.floats(44 * 29 * taps(4, 5), 8));
  result.push_back(dense.with_epilogue(44));
  return result;
}

Problems single(std::unique_ptr<TestProblem> problem) {
  Problems result;
  result.push_back(std::move(problem));
  return result;
}

Problems pool_problems(OpKind kind) {
  ProblemBuilder problem(kind, "2x2 stride 2 on 7x9x37, padded");
  problem.operand(DataType::kF32, 7, 9, 37).window(2, 2, 2, 1, 1, 0.0f);
  return single(problem.with_epilogue(37));
}

Problems bit_pool_problems() {
  ProblemBuilder problem(OpKind::kMaxPool2d, "3x3 stride 2 on 7x9x70, flipped channels");
  problem.operand(DataType::kBit, 7, 9, 70).window(3, 3, 2, 1, 1, 0.0f);
  problem.flip_mask(problem.bits(1, 70));
  const auto [height, width] = problem.output_map();
  return single(problem.with_bits(height, width, 70));
}

Problems elementwise_problems() {
  Problems result;
  for (const DataType dtype : {DataType::kF32, DataType::kU8, DataType::kBit}) {
    ProblemBuilder problem(OpKind::kElementwise, "5x7x37");
    problem.operand(dtype, 5, 7, 37);
    result.push_back(problem.with_epilogue(37));
  }
  ProblemBuilder rounded(OpKind::kElementwise, "5x7x37, rounded");
  rounded.operand(DataType::kF32, 5, 7, 37).round();
  result.push_back(rounded.with_epilogue(37));
  return result;
}

Problems concat_problems(DataType dtype) {
  ProblemBuilder problem(OpKind::kConcat, "37 and 50 channels on 5x7");
  problem.operand(dtype, 5, 7, 37).operand(dtype, 5, 7, 50);
  return single(dtype == DataType::kBit ? problem.with_bits(5, 7, 87) : problem.with_values(5, 7, 87));
}

Problems pad_problems() {
  ProblemBuilder problem(OpKind::kPad, "5x7x6");
  problem.operand(DataType::kF32, 5, 7, 6).window(0, 0, 1, 1, 2, 0.5f);
  return single(problem.with_values(9, 11, 6));
}

Problems select_channels_problems() {
  ProblemBuilder problem(OpKind::kSelectChannels, "42 of 37 channels, zeros among them, on 5x7");
  problem.operand(DataType::kF32, 5, 7, 37);
  problem.weights(problem.channel_indices(42));
  return single(problem.with_values(5, 7, 42));
}

Problems softmax_problems(OpKind kind) {
  ProblemBuilder problem(kind, "2x3x37");
  problem.operand(DataType::kF32, 2, 3, 37);
  Problems result = single(problem.with_values(2, 3, 37));
  // Without correctly rounded division a device is allowed 2.5 units in the last place.
  if (kind == OpKind::kSoftmax) result.back()->tolerance = 1e-6f;
  return result;
}

using Maker = Problems (*)();
const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> table = {
      {"binary_conv2d", binary_conv_problems},
      {"binary_depthwise_conv2d", binary_depthwise_problems},
      {"conv2d_u8", u8_conv_problems},
      {"conv2d_f32", float_conv_problems},
      {"conv2d_f32_grouped", [] { return single(float_conv_problem(12, 18, 3)); }},
      {"depthwise_conv2d_f32", [] { return single(float_conv_problem(21, 21, 21)); }},
      {"max_pool2d", [] { return pool_problems(OpKind::kMaxPool2d); }},
      {"average_pool2d", [] { return pool_problems(OpKind::kAveragePool2d); }},
      {"max_pool2d_bits", bit_pool_problems},
      {"elementwise", elementwise_problems},
      {"concat", [] { return concat_problems(DataType::kF32); }},
      {"concat_bits", [] { return concat_problems(DataType::kBit); }},
      {"pad", pad_problems},
      {"select_channels", select_channels_problems},
      {"softmax", [] { return softmax_problems(OpKind::kSoftmax); }},
      {"log_softmax", [] { return softmax_problems(OpKind::kLogSoftmax); }},
  };
  return table;
}

}  // namespace

std::vector<std::unique_ptr<TestProblem>> test_problems(const std::string& op) {
  const auto at = makers().find(op);
  return at == makers().end() ? Problems{} : at->second();
}

std::vector<std::string> tested_ops() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

std::vector<std::vector<std::byte>> TestProblem::operands() const {
  std::mt19937 random(99);
  std::vector<int> tensors = model.ops[0].operands;
  for (const format::StepRecord& step : model.ops[0].steps) {
    if (step.tensor >= 0) tensors.push_back(step.tensor);
  }
  std::vector<std::vector<std::byte>> result;
  for (const int index : tensors) {
    const loader::Tensor& tensor = model.tensor(index);
    result.push_back(random_content(tensor, 2, random));
  }
  return result;
}

}  // namespace phonebit::opencl
