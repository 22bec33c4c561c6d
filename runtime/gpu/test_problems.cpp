#include "gpu/test_problems.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "format/half.h"
#include "gpu/layer.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {

/// A shape with the operator that it is of.
struct Problem : TestShape {
  format::OpKind kind;
};

namespace {

using format::DataType;
using format::OpKind;
using format::StepKind;
using format::ThresholdKind;

constexpr DataType kBit = DataType::kBit, kU8 = DataType::kU8, kF32 = DataType::kF32;

/// Of all operators, in their order.
std::vector<Problem> all_problems() {
  std::vector<Problem> result;
#define PHONEBIT_PROBLEMS(number, kind, ...) \
  for (const TestShape& shape : KernelsOf<OpKind::kind>::all.tests) result.push_back({shape, OpKind::kind});
  PHONEBIT_OPERATORS(PHONEBIT_PROBLEMS)
#undef PHONEBIT_PROBLEMS
  return result;
}

int output_size(int in, int kernel, const TestShape::Window& window) {
  const int padded = in + 2 * window.pad;
  return kernel == 0 ? padded : (padded - (kernel - 1) * window.dilation - 1) / window.stride + 1;
}

}  // namespace

/// Puts the one-op model of a problem together.
class ProblemBuilder {
 public:
  explicit ProblemBuilder(const Problem& problem)
      : problem_(problem),
        out_h_(output_size(problem.operand.height, problem.window.kernel_h, problem.window)),
        out_w_(output_size(problem.operand.width, problem.window.kernel_w, problem.window)),
        random_(1234),
        result_(std::make_unique<TestProblem>()) {
    const TestShape::Window& window = problem.window;
    op_.name = "self-test";
    op_.kind = problem.kind;
    format::OpRecord& record = op_.record = {};
    record.kind = static_cast<uint32_t>(problem.kind);
    record.value_output = record.bits_output = record.weights = format::kNone;
    record.threshold = record.flip_mask = format::kNone;
    record.groups = problem.groups;
    record.kernel_h = window.kernel_h;
    record.kernel_w = window.kernel_w;
    record.stride_h = record.stride_w = window.stride;
    record.dilation_h = record.dilation_w = window.dilation;
    record.pad_top = record.pad_left = record.pad_bottom = record.pad_right = window.pad;
    record.pad_value = window.pad_value;
    if (problem.dtype == kU8 && problem.kind == OpKind::kConv2d) {
      record.input_mul = 2;
      record.input_add = -255;
    }
  }

  std::unique_ptr<TestProblem> build() {
    const TestShape::Map& map = problem_.operand;
    add_operand(map.height, map.width, map.channels);
    if (ops::traits(problem_.kind).takes_many_operands())
      add_operand(map.height, map.width, problem_.out_channels - map.channels);
    if (problem_.kind == OpKind::kMatmul)
      add_operand(1, map.channels / problem_.groups, problem_.out_channels);
    if (problem_.kind == OpKind::kMatmulTransposed)
      add_operand(1, problem_.out_channels / problem_.groups, map.channels);
    add_weights();
    add_output();
    result_->description = description();
    result_->tolerance = problem_.tolerance;
    result_->model.ops.push_back(std::move(op_));
    return std::move(result_);
  }

 private:
  std::string description() const {
    static constexpr const char* kOutputs[] = {"thresholds", "epilogue", "rounded, epilogue",
                                               "copies",     "values",   "planes"};
    const TestShape::Window& window = problem_.window;
    return format_text(
        "%dx%dx%d -> %d channels, window %dx%d, stride %d, dilation %d, padding %d of %g, %d groups, %s",
        problem_.operand.height, problem_.operand.width, problem_.operand.channels, problem_.out_channels,
        window.kernel_h, window.kernel_w, window.stride, window.dilation, window.pad,
        static_cast<double>(window.pad_value), problem_.groups, kOutputs[problem_.output]);
  }
  int tensor(const char* name, DataType dtype, int height, int width, int channels) {
    result_->model.tensors.push_back({name, dtype, height, width, channels});
    return static_cast<int>(result_->model.tensors.size()) - 1;
  }
  int output(const char* name, DataType dtype) {
    return tensor(name, dtype, out_h_, out_w_, problem_.out_channels);
  }
  void add_operand(int height, int width, int channels) {
    op_.operands.push_back(tensor("operand", problem_.dtype, height, width, channels));
  }

  void add_weights() {
    const auto taps = static_cast<size_t>(problem_.window.kernel_h * problem_.window.kernel_w);
    const size_t rows = problem_.out_channels * taps;
    const int depth = problem_.operand.channels / problem_.groups;
    switch (ops::traits(problem_.kind).weights) {
      case ops::Weights::filters:
        op_.record.weights =
            problem_.dtype == kF32 ? halves(rows * static_cast<size_t>(depth)) : bits(rows, depth);
        break;
      case ops::Weights::one_filter_a_channel:
        op_.record.weights = bits(taps, problem_.operand.channels);
        break;
      case ops::Weights::channel_indices:
        op_.record.weights = integers(problem_.out_channels, -1, problem_.operand.channels - 1);
        break;
      case ops::Weights::none:
        break;
    }
    if (problem_.kind == OpKind::kMaxPool2d && problem_.dtype == kBit)
      op_.record.flip_mask = bits(1, problem_.operand.channels);
  }

  void add_output() {
    format::OpRecord& record = op_.record;
    switch (problem_.output) {
      case TestShape::kThresholds:
        record.bits_output = output("bits", kBit);
        record.threshold_kind = static_cast<uint32_t>(ThresholdKind::kI32);
        record.threshold = integers(problem_.out_channels, -problem_.reach, problem_.reach);
        break;
      case TestShape::kRoundedEpilogue:
        add_step(StepKind::kRound, -1, -1, -1);
        add_epilogue();
        break;
      case TestShape::kEpilogue:
        add_epilogue();
        break;
      case TestShape::kPlanes:
        record.planes = ops::kMaxPlanes;
        record.bits_output = output("plane", kBit);
        for (uint32_t plane = 1; plane < record.planes; ++plane) output("plane", kBit);
        break;
      case TestShape::kCopies:
        if (problem_.dtype == kBit)
          record.bits_output = output("bits", kBit);
        else
          record.value_output = output("values", kF32);
        break;
      case TestShape::kValues:
        record.value_output = output("values", kF32);
        break;
    }
  }

  /// Scale, bias, shortcut, clamp; values and bits out.
  void add_epilogue() {
    const size_t count = problem_.out_channels;
    op_.record.value_output = output("values", kF32);
    op_.record.bits_output = output("bits", kBit);
    const int shortcut = output("shortcut", kF32);
    const int scale = floats(count, 8), bias = floats(count, 32);
    add_step(StepKind::kScaleBias, -1, scale, bias);
    add_step(StepKind::kAdd, shortcut, -1, -1);
    add_step(StepKind::kPrelu, -1, floats(count, 8), -1);
    const int below = floats(count, 8), above = floats(count, 8);
    add_step(StepKind::kPrelu, -1, below, above);
    add_step(StepKind::kClamp, -1, -1, -1);
    op_.steps.back().value_a = -20.0f;
    op_.steps.back().value_b = std::numeric_limits<float>::infinity();
    op_.record.threshold_kind = static_cast<uint32_t>(ThresholdKind::kF32);
    op_.record.threshold = floats(count, 16);
  }
  void add_step(StepKind kind, int tensor, int a, int b) {
    format::StepRecord step{};
    step.kind = static_cast<uint32_t>(kind);
    step.tensor = tensor;
    step.constant_a = a;
    step.constant_b = b;
    op_.steps.push_back(step);
  }

  /// Rows of `channels` random bits.
  int bits(size_t rows, int channels) {
    const auto row_words = static_cast<size_t>((channels + 31) / 32);
    const uint32_t tail = channels % 32 != 0 ? (1u << (channels % 32)) - 1 : ~0u;
    std::vector<uint32_t> words(rows * row_words);
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<uint32_t>(random_()) & (i % row_words == row_words - 1 ? tail : ~0u);
    return constant(kBit, std::move(words));
  }
  /// Multiples of 1/8.
  int floats(size_t count, int reach) {
    std::vector<uint32_t> words(count);
    for (uint32_t& word : words) {
      const float value = static_cast<float>(between(-reach, reach)) / 8;
      std::memcpy(&word, &value, sizeof word);
    }
    return constant(kF32, std::move(words));
  }
  /// The same from -1 to 1, stored as halves, of which every kernel may make use.
  int halves(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(between(-8, 8)) / 8;
    const std::vector<uint16_t> stored = format::to_halves(values.data(), count);
    std::vector<uint32_t> words((count + 1) / 2);
    std::memcpy(words.data(), stored.data(), count * sizeof(uint16_t));
    return constant(DataType::kF16, std::move(words), count);
  }
  int integers(size_t count, int low, int high) {
    std::vector<uint32_t> words(count);
    for (uint32_t& word : words) word = static_cast<uint32_t>(between(low, high));
    return constant(DataType::kI32, std::move(words));
  }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  int constant(DataType dtype, std::vector<uint32_t> words) {
    const size_t count = words.size();
    return constant(dtype, std::move(words), count);
  }
  int constant(DataType dtype, std::vector<uint32_t> words, uint64_t count) {
    std::vector<loader::Constant>& constants = result_->model.constants;
    constants.push_back({dtype, count, reinterpret_cast<const std::byte*>(words.data())});
    result_->memory_.push_back(std::move(words));  // which leaves the words where they are
    return static_cast<int>(constants.size()) - 1;
  }

  const Problem& problem_;
  int out_h_, out_w_;
  std::mt19937 random_;
  std::unique_ptr<TestProblem> result_;
  loader::Op op_;
};

std::vector<std::byte> random_content(const loader::Tensor& tensor, int images, std::mt19937& random) {
  std::vector<std::byte> content(tensor.bytes() * static_cast<size_t>(images));
  const auto words = static_cast<size_t>(tensor.words());
  for (size_t at = 0; at < content.size(); at += 4) {
    auto word = static_cast<uint32_t>(random());
    if (tensor.dtype == format::DataType::kF32) {
      const float value = static_cast<float>(static_cast<int>(word % 65) - 32) / 8;
      std::memcpy(&word, &value, sizeof word);
    }
    const bool has_tail = tensor.dtype == format::DataType::kBit && tensor.channels % 32 != 0;
    if (has_tail && at / 4 % words == words - 1) word &= (1u << (tensor.channels % 32)) - 1;
    std::memcpy(content.data() + at, &word, std::min<size_t>(4, content.size() - at));
  }
  return content;
}

std::vector<std::unique_ptr<TestProblem>> test_problems(const std::string& op) {
  std::vector<std::unique_ptr<TestProblem>> result;
  for (const Problem& problem : all_problems()) {
    if (op == problem.op) result.push_back(ProblemBuilder(problem).build());
  }
  return result;
}

std::vector<std::string> tested_ops() {
  std::vector<std::string> names;
  for (const Problem& problem : all_problems()) {
    if (std::find(names.begin(), names.end(), problem.op) == names.end()) names.emplace_back(problem.op);
  }
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

}  // namespace phonebit::engine::gpu
