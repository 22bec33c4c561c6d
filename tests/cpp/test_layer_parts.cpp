// A part of a layer gives what the whole layer gives there, bit for bit; it writes nothing outside of itself
// and reads nothing but what analysis::part_read names. For every op on every supported instruction set.
#include <deque>

#include "analysis/conv_shape.h"
#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "cpu/layer.h"
#include "kernel_check.h"
#include "loader/validate.h"
#include "types/error.h"

namespace check {
namespace {

using phonebit::engine::OutputPart;
using phonebit::engine::Precision;
using phonebit::engine::format::DataType;
using phonebit::engine::format::kNone;
using phonebit::engine::format::OpKind;
using phonebit::engine::format::ThresholdKind;
using phonebit::engine::loader::Model;
using phonebit::engine::loader::Op;
using phonebit::engine::loader::Tensor;
namespace analysis = phonebit::engine::analysis;

/// A model of one op with random attributes, constants and steps.
class RandomOp {
 public:
  RandomOp(Random& random, OpKind kind, DataType input, DataType weights) : random_(random), kind_(kind) {
    for (bool is_valid = false; !is_valid;) {
      model_ = Model();
      model_.ops.emplace_back();
      make(input, weights);
      // Some windows of pools have no tap inside the map.
      try {
        phonebit::engine::loader::ContentChecks checks;
        phonebit::engine::loader::validate_op(model_, 0, checks);
        is_valid = true;
      } catch (const phonebit::engine::Error&) {
      }
    }
  }

  const Model& model() const { return model_; }
  const Op& op() const { return model_.ops[0]; }

 private:
  Op& mutable_op() { return model_.ops[0]; }

  int tensor(DataType dtype, int height, int width, int channels) {
    model_.tensors.push_back({"t" + std::to_string(model_.tensors.size()), dtype, height, width, channels});
    return (int)model_.tensors.size() - 1;
  }

  template <class T>
  int constant(DataType dtype, const std::vector<T>& values) {
    data_.emplace_back((values.size() * sizeof(T) + 3) / 4);
    std::memcpy(data_.back().data(), values.data(), values.size() * sizeof(T));
    model_.constants.push_back({dtype, values.size(), (const std::byte*)data_.back().data()});
    return (int)model_.constants.size() - 1;
  }
  int random_floats(int64_t count) { return constant(DataType::kF32, floats(random_, (size_t)count)); }

  bool is_conv() const { return kind_ == OpKind::kBinaryConv2d || kind_ == OpKind::kConv2d; }
  bool has_window() const {
    return is_conv() || kind_ == OpKind::kBinaryDepthwiseConv2d || kind_ == OpKind::kMaxPool2d ||
           kind_ == OpKind::kAveragePool2d;
  }

  void make(DataType input, DataType weights) {
    const int channels = pick_channels(random_);
    int groups = 1, out_channels = channels;
    if (is_conv()) {
      out_channels = pick_one(random_, {1, 31, 32, 33, 64, 65, 96, 130, 200});
      if (random_() % 4 == 0) groups = pick_one(random_, {2, 3});
      // One filter a channel is a case of its own.
      if (input == DataType::kF32 && random_() % 8 == 0) groups = out_channels = channels;
    }
    if (groups != channels) out_channels *= groups;
    const int in_channels = groups == channels ? channels : channels * groups;
    const ConvShape s = random_shape(random_, in_channels, out_channels, 12);
    Op& op = mutable_op();
    op.kind = kind_;
    op.record = {};
    op.record.kind = (uint32_t)kind_;
    op.record.value_output = op.record.bits_output = op.record.weights = op.record.threshold =
        op.record.flip_mask = kNone;
    op.record.groups = op.record.input_mul = 1;
    op.record.kernel_h = op.record.kernel_w = op.record.stride_h = op.record.stride_w = op.record.dilation_h =
        op.record.dilation_w = 1;
    op.operands = {tensor(input, s.in_h, s.in_w, in_channels)};
    if (has_window()) set_window(s);
    if (is_conv()) set_weights(input, weights, out_channels, in_channels / groups);
    op.record.groups = (uint32_t)groups;
    if (kind_ == OpKind::kBinaryDepthwiseConv2d)
      op.record.weights =
          constant(DataType::kBit, bits(random_, (size_t)s.kernel_h * s.kernel_w, in_channels));
    const bool has_epilogue = has_window() || kind_ == OpKind::kElementwise;
    if (has_epilogue && !(kind_ == OpKind::kMaxPool2d && input == DataType::kBit))
      return set_epilogue(has_window() ? s.out_h : s.in_h, has_window() ? s.out_w : s.in_w, out_channels,
                          input);
    set_copy(s, input);
  }

  void set_window(const ConvShape& s) {
    auto& record = mutable_op().record;
    record.kernel_h = (uint32_t)s.kernel_h, record.kernel_w = (uint32_t)s.kernel_w;
    record.stride_h = (uint32_t)s.stride_h, record.stride_w = (uint32_t)s.stride_w;
    record.dilation_h = (uint32_t)s.dilation_h, record.dilation_w = (uint32_t)s.dilation_w;
    record.pad_top = (uint32_t)s.pad_top, record.pad_bottom = (uint32_t)s.pad_bottom;
    record.pad_left = (uint32_t)s.pad_left, record.pad_right = (uint32_t)s.pad_right;
    if (kind_ == OpKind::kBinaryConv2d || kind_ == OpKind::kBinaryDepthwiseConv2d)
      record.pad_value = (float)pick(random_, -1, 1);
  }

  void set_weights(DataType input, DataType weights, int filters, int channels) {
    auto& record = mutable_op().record;
    const size_t taps = (size_t)filters * record.kernel_h * record.kernel_w;
    if (weights == DataType::kBit) record.weights = constant(weights, bits(random_, taps, channels));
    if (weights == DataType::kF32) record.weights = random_floats((int64_t)taps * channels);
    if (weights == DataType::kF16) {
      std::vector<uint16_t> halves(taps * channels);
      for (uint16_t& half : halves) half = (uint16_t)((random_() % 2 << 15) | random_() % 0x4400);
      record.weights = constant(weights, halves);
    }
    if (weights == DataType::kI8) {
      std::vector<int8_t> bytes(taps * channels);
      for (int8_t& byte : bytes) byte = (int8_t)pick(random_, -127, 127);
      record.weights = constant(weights, bytes);
    }
    if (input == DataType::kU8)
      record.input_mul = pick_one(random_, {1, 2, -1}), record.input_add = pick_one(random_, {0, -255, 7});
  }

  void set_epilogue(int height, int width, int channels, DataType input) {
    Op& op = mutable_op();
    const bool sums_integers = op.kind == OpKind::kBinaryConv2d ||
                               op.kind == OpKind::kBinaryDepthwiseConv2d ||
                               (op.kind == OpKind::kConv2d && input == DataType::kU8);
    if (sums_integers && random_() % 2) {
      std::vector<int32_t> thresholds((size_t)channels);
      for (int32_t& t : thresholds) t = random_() % 8 ? pick(random_, -40, 40) : INT32_MIN;
      op.record.bits_output = tensor(DataType::kBit, height, width, channels);
      op.record.threshold_kind = (uint32_t)ThresholdKind::kI32;
      op.record.threshold = constant(DataType::kI32, thresholds);
      return;
    }
    const bool has_bits = random_() % 3 != 0;
    if (!has_bits || random_() % 2) op.record.value_output = tensor(DataType::kF32, height, width, channels);
    if (has_bits) {
      op.record.bits_output = tensor(DataType::kBit, height, width, channels);
      op.record.threshold_kind = (uint32_t)ThresholdKind::kF32;
      if (random_() % 2) op.record.threshold = random_floats(channels);
    }
    for (int i = pick(random_, 0, 4); i > 0; i--) add_step(height, width, channels);
  }

  void add_step(int height, int width, int channels) {
    using phonebit::engine::format::StepKind;
    constexpr StepKind kKinds[] = {StepKind::kScaleBias, StepKind::kAdd,   StepKind::kMultiply,
                                   StepKind::kClamp,     StepKind::kPrelu, StepKind::kRound};
    const StepKind kind = kKinds[random_() % std::size(kKinds)];
    const bool is_broadcast = random_() % 2;
    const int64_t slopes = is_broadcast ? channels : (int64_t)height * width * channels;
    phonebit::engine::format::StepRecord step = {(uint32_t)kind, kNone, kNone, kNone, -2.0f, 6.0f, {}};
    if (kind == StepKind::kAdd || kind == StepKind::kMultiply)
      step.tensor = is_broadcast ? tensor(DataType::kF32, 1, 1, channels)
                                 : tensor(DataType::kF32, height, width, channels);
    if (kind == StepKind::kScaleBias)
      step.constant_a = random_floats(channels), step.constant_b = random_floats(channels);
    if (kind == StepKind::kPrelu) {
      step.constant_a = random_floats(slopes);
      if (random_() % 2) step.constant_b = random_floats(slopes);
    }
    mutable_op().steps.push_back(step);
  }

  /// Ops without an epilogue.
  void set_copy(const ConvShape& s, DataType input) {
    Op& op = mutable_op();
    auto& record = op.record;
    int height = s.in_h, width = s.in_w, channels = s.in_c;
    if (op.kind == OpKind::kMaxPool2d) {
      height = s.out_h, width = s.out_w;
      if (random_() % 2) record.flip_mask = constant(DataType::kBit, bits(random_, 1, channels));
    }
    if (op.kind == OpKind::kConcat) {
      for (int i = pick(random_, 0, 2); i > 0; i--) {
        const int more = pick_channels(random_);
        op.operands.push_back(tensor(input, height, width, more));
        channels += more;
      }
    }
    if (op.kind == OpKind::kPad) {
      record.pad_top = random_() % 3, record.pad_bottom = random_() % 3;
      record.pad_left = random_() % 3, record.pad_right = random_() % 3;
      record.pad_value = pick_float(random_);
      height += (int)(record.pad_top + record.pad_bottom), width += (int)(record.pad_left + record.pad_right);
    }
    if (op.traits().is_product()) {
      // Of as many columns as the operand has channels in a group, or has pixels.
      const int groups = channels % 2 == 0 ? 2 : 1, depth = channels / groups, columns = pick(random_, 1, 40);
      record.groups = (uint32_t)groups;
      const bool is_plain = op.kind == OpKind::kMatmul;
      op.operands.push_back(is_plain ? tensor(input, 1, depth, groups * columns)
                                     : tensor(input, columns, 1, channels));
      record.value_output = tensor(DataType::kF32, height, width, groups * columns);
      return;
    }
    if (op.kind >= OpKind::kResizeBilinear && op.kind <= OpKind::kResizeBicubicCorners)
      height = pick(random_, 1, 2 * height + 1), width = pick(random_, 1, 2 * width + 1);
    if (op.kind == OpKind::kSelectChannels) {
      std::vector<int32_t> indices((size_t)pick_channels(random_));
      const int first = pick(random_, -1, channels - 1);
      for (size_t i = 0; i < indices.size(); i++)
        indices[i] = random_() % 2 ? pick(random_, -1, channels - 1) : (first + (int)i) % channels;
      record.weights = constant(DataType::kI32, indices);
      channels = (int)indices.size();
    }
    if (op.kind == OpKind::kBitPlanes) {
      record.planes = (uint32_t)pick(random_, 1, (int)phonebit::engine::ops::kMaxPlanes);
      record.bits_output = tensor(DataType::kBit, height, width, channels);
      for (uint32_t plane = 1; plane < record.planes; plane++)
        tensor(DataType::kBit, height, width, channels);
      return;
    }
    const int output = tensor(input, height, width, channels);
    (input == DataType::kBit ? record.bits_output : record.value_output) = output;
  }

  Random& random_;
  OpKind kind_;
  Model model_;
  std::deque<std::vector<uint32_t>> data_;
};

/// Memory of all tensors, each its own.
class Memory final : public TensorSlots {
 public:
  explicit Memory(const Model& model) {
    for (const Tensor& tensor : model.tensors) tensors_.emplace_back((tensor.bytes() + 3) / 4, 0xA5A5A5A5u);
  }
  std::vector<uint32_t>& of(int tensor) { return tensors_[(size_t)tensor]; }
  bool is_shared(int, int) const override { return false; }

 private:
  void bind_slot(int tensor, size_t offset, void* pointer_variable) override {
    std::byte* const target = (std::byte*)of(tensor).data() + offset;
    std::memcpy(pointer_variable, &target, sizeof target);
  }
  std::vector<std::vector<uint32_t>> tensors_;
};

void fill(Random& random, const Tensor& tensor, std::vector<uint32_t>& words) {
  if (tensor.dtype == DataType::kBit) {
    words = bits(random, (size_t)tensor.pixels(), tensor.channels);
  } else if (tensor.dtype == DataType::kF32) {
    const std::vector<float> values = floats(random, (size_t)tensor.elements());
    std::memcpy(words.data(), values.data(), tensor.bytes());
  } else {
    for (uint32_t& word : words) word = (uint32_t)random();
  }
}

/// How a layer keeps its weights.
struct Layout {
  std::string kernel;
  size_t packed_bytes;
};

/// Copies a part of a tensor.
void copy_part(const Tensor& tensor, const OutputPart& part, const std::vector<uint32_t>& from,
               std::vector<uint32_t>& to) {
  const size_t pixel_bytes = tensor.bytes() / (size_t)tensor.pixels();
  const bool is_bits = tensor.dtype == DataType::kBit;
  const size_t unit = is_bits ? 4 : pixel_bytes / (size_t)tensor.channels;
  const auto bytes_to = [&](int channel) { return unit * (size_t)(is_bits ? words(channel) : channel); };
  const size_t begin = bytes_to(part.channel_begin), end = bytes_to(part.channel_end);
  for (int pixel = part.row_begin * tensor.width; pixel < part.row_end * tensor.width; pixel++) {
    const size_t at = (size_t)pixel * pixel_bytes + begin;
    std::memcpy((char*)to.data() + at, (const char*)from.data() + at, end - begin);
  }
}

/// Runs the part on `inputs`, of which it sees only what it says it reads.
Layout run(const Isa& isa, const RandomOp& random_op, Precision precision, const OutputPart& part,
           Memory& inputs, Memory& memory) {
  static phonebit::engine::threads::ThreadPool pool(2);
  const Model& model = random_op.model();
  const std::vector<int> read = analysis::tensors_read(random_op.op());
  for (size_t i = 0; i < read.size(); i++) {
    const Tensor& tensor = model.tensor(read[i]);
    std::memset(memory.of(read[i]).data(), 0xFF, tensor.bytes());  // not a number
    copy_part(tensor, analysis::part_read(model, random_op.op(), i, part), inputs.of(read[i]),
              memory.of(read[i]));
  }
  analysis::MemoryBudget budget(UINT64_MAX);
  PackingList packing;
  const std::unique_ptr<Layer> layer =
      make_layer({model, isa, pool.threads(), memory, budget, packing, precision}, 0, part);
  const PackedWeights packed = packing.run(pool);
  AlignedBytes scratch(layer->scratch_bytes());
  layer->set_scratch((std::byte*)scratch.data);
  run_layer(*layer, pool, phonebit::engine::Cancellation());
  return {layer->kernel(), layer->packed_bytes()};
}

/// Inside the part `got` is the whole layer's, outside what it was before.
void compare(const Tensor& tensor, const OutputPart& part, const std::vector<uint32_t>& got,
             const std::vector<uint32_t>& whole) {
  const bool is_bits = tensor.dtype == DataType::kBit;
  const int units = is_bits ? 32 * tensor.words() : tensor.channels;
  // The bits after the last channel belong to it.
  const int end = part.channel_end == tensor.channels ? units : part.channel_end;
  for (int64_t p = 0; p < tensor.pixels(); p++) {
    const int row = (int)(p / tensor.width);
    for (int c = 0; c < units; c++) {
      const bool is_inside =
          row >= part.row_begin && row < part.row_end && c >= part.channel_begin && c < end;
      const size_t at = (size_t)(is_bits ? p * tensor.words() + c / 32 : p * units + c);
      const int shift = is_bits ? c % 32 : 0;
      const uint32_t mask = is_bits ? 1 : ~0u;
      const uint32_t expected = (is_inside ? whole[at] : 0xA5A5A5A5u) >> shift & mask;
      if ((got[at] >> shift & mask) != expected)
        FAIL(tensor.name, is_inside ? ", inside" : ", outside", " the part, row ", row, " channel ", c,
             ": got ", hex(got[at] >> shift & mask), ", expected ", hex(expected));
    }
  }
}

/// Gives every row the same largest magnitude, by which quantized arithmetic scales the rows that it reads.
void level(const Tensor& tensor, std::vector<uint32_t>& words) {
  constexpr float kLargest = 3.0f;
  for (int row = 0; row < tensor.height; row++)
    std::memcpy(words.data() + (size_t)row * tensor.width * tensor.channels, &kLargest, sizeof kLargest);
}

void parts_are_the_whole(const Isa& isa, Random& random, OpKind kind, DataType input, DataType weights,
                         Precision precision) {
  const RandomOp random_op(random, kind, input, weights);
  const Model& model = random_op.model();
  const Op& op = random_op.op();
  const OutputPart whole = analysis::whole_part(model, op);
  Memory inputs(model), expected(model);
  for (const int tensor : analysis::tensors_read(op)) fill(random, model.tensor(tensor), inputs.of(tensor));
  if (precision == Precision::fast) level(model.operand(op), inputs.of(op.operands[0]));
  const Layout of_whole = run(isa, random_op, precision, whole, inputs, expected);

  std::vector<int> rows = {0, whole.row_end}, channels = {0, whole.channel_end};
  if (analysis::can_split_rows(model, op)) rows = random_cuts(random, whole.row_end);
  if (analysis::can_split_channels(model, op) && random() % 2) {
    channels = random_cuts(random, words(whole.channel_end));
    for (int& cut : channels) cut = std::min(32 * cut, whole.channel_end);
  }
  INFO(describe(analysis::conv_shape(model, op)));
  for (size_t i = 0; i + 1 < rows.size(); i++) {
    for (size_t j = 0; j + 1 < channels.size(); j++) {
      const OutputPart part = {rows[i], rows[i + 1], channels[j], channels[j + 1]};
      if (part.row_begin == part.row_end || part.channel_begin == part.channel_end) continue;
      INFO("part ", part.row_begin, ":", part.row_end, ", ", part.channel_begin, ":", part.channel_end);
      Memory got(model);
      const Layout of_part = run(isa, random_op, precision, part, inputs, got);
      if (of_part.kernel == of_whole.kernel) REQUIRE(of_part.packed_bytes <= of_whole.packed_bytes);
      for (const int tensor : analysis::tensors_written(op))
        compare(model.tensor(tensor), part, got.of(tensor), expected.of(tensor));
    }
  }
}

void wrong_parts_are_refused(const Isa& isa, Random& random) {
  const RandomOp softmax(random, OpKind::kSoftmax, DataType::kF32, DataType::kBit);
  const RandomOp elementwise(random, OpKind::kElementwise, DataType::kF32, DataType::kBit);
  const OutputPart whole = analysis::whole_part(softmax.model(), softmax.op());
  const OutputPart by_channels = analysis::whole_part(elementwise.model(), elementwise.op());
  OutputPart beyond = whole, empty = whole, channels = whole, word_after = by_channels,
             inside_word = by_channels;
  beyond.row_end++;
  empty.row_begin = empty.row_end;
  channels.channel_begin = -32;
  const auto check = [&](const RandomOp& op, const OutputPart& part) {
    INFO("rows ", part.row_begin, " to ", part.row_end);
    Memory memory(op.model());
    analysis::MemoryBudget budget(UINT64_MAX);
    PackingList packing;
    CHECK_THROWS_AS(make_layer({op.model(), isa, 1, memory, budget, packing}, 0, part),
                    phonebit::engine::Error);
  };
  for (const OutputPart& part : {beyond, empty, channels}) check(softmax, part);
  if (by_channels.channel_end < 18) return;
  word_after.channel_begin = 8;
  inside_word.channel_end = 16;
  for (const OutputPart& part : {word_after, inside_word}) check(elementwise, part);
}

struct Kind {
  const char* name;
  OpKind kind;
  DataType input, weights;
  Precision precision = Precision::exact;
};
constexpr Kind kKinds[] = {
    {"binary_conv2d", OpKind::kBinaryConv2d, DataType::kBit, DataType::kBit},
    {"binary_depthwise", OpKind::kBinaryDepthwiseConv2d, DataType::kBit, DataType::kBit},
    {"conv2d u8", OpKind::kConv2d, DataType::kU8, DataType::kBit},
    {"conv2d f32", OpKind::kConv2d, DataType::kF32, DataType::kF32},
    {"conv2d f16", OpKind::kConv2d, DataType::kF32, DataType::kF16},
    {"conv2d i8", OpKind::kConv2d, DataType::kF32, DataType::kI8},
    {"conv2d f16 fast", OpKind::kConv2d, DataType::kF32, DataType::kF16, Precision::fast},
    {"conv2d i8 fast", OpKind::kConv2d, DataType::kF32, DataType::kI8, Precision::fast},
    {"conv2d bit weights", OpKind::kConv2d, DataType::kF32, DataType::kBit},
    {"max_pool2d bit", OpKind::kMaxPool2d, DataType::kBit, DataType::kBit},
    {"max_pool2d f32", OpKind::kMaxPool2d, DataType::kF32, DataType::kBit},
    {"average_pool2d", OpKind::kAveragePool2d, DataType::kF32, DataType::kBit},
    {"elementwise bit", OpKind::kElementwise, DataType::kBit, DataType::kBit},
    {"elementwise u8", OpKind::kElementwise, DataType::kU8, DataType::kBit},
    {"elementwise f32", OpKind::kElementwise, DataType::kF32, DataType::kBit},
    {"softmax", OpKind::kSoftmax, DataType::kF32, DataType::kBit},
    {"log_softmax", OpKind::kLogSoftmax, DataType::kF32, DataType::kBit},
    {"concat bit", OpKind::kConcat, DataType::kBit, DataType::kBit},
    {"concat f32", OpKind::kConcat, DataType::kF32, DataType::kBit},
    {"pad", OpKind::kPad, DataType::kF32, DataType::kBit},
    {"select_channels", OpKind::kSelectChannels, DataType::kF32, DataType::kBit},
    {"resize_bilinear", OpKind::kResizeBilinear, DataType::kF32, DataType::kBit},
    {"resize_bilinear_corners", OpKind::kResizeBilinearCorners, DataType::kF32, DataType::kBit},
    {"resize_bicubic", OpKind::kResizeBicubic, DataType::kF32, DataType::kBit},
    {"resize_bicubic_corners", OpKind::kResizeBicubicCorners, DataType::kF32, DataType::kBit},
    {"matmul", OpKind::kMatmul, DataType::kF32, DataType::kBit},
    {"matmul_transposed", OpKind::kMatmulTransposed, DataType::kF32, DataType::kBit},
    {"matmul_bits", OpKind::kMatmulTransposed, DataType::kBit, DataType::kBit},
    {"bit_planes", OpKind::kBitPlanes, DataType::kF32, DataType::kBit},
};

/// The tables from which layers of that kind take their kernels.
std::vector<const void*> kernels_of(const Isa& isa, const Kind& kind) {
  if (kind.kind == OpKind::kBinaryConv2d) return {isa.binary_conv, isa.values};
  if (kind.kind != OpKind::kConv2d) return {isa.values};
  if (kind.input == DataType::kU8) return {isa.u8_conv, isa.values};
  if (kind.weights == DataType::kI8 || kind.precision == Precision::fast) return {isa.i8_conv, isa.values};
  return {isa.values};
}

TEST_CASE("parts are the whole") {
  const auto name_of = [](const Kind& kind) { return kind.name; };
  for_each_subcase(kKinds, name_of, [](const Kind& kind) {
    const auto kernels = [&](const Isa& isa) { return kernels_of(isa, kind); };
    for_each_isa(kernels, test_cases(40), [&](const Isa& isa, Random& random) {
      parts_are_the_whole(isa, random, kind.kind, kind.input, kind.weights, kind.precision);
    });
  });
}
TEST_CASE("wrong parts are refused") { for_each_isa(&Isa::values, 1, wrong_parts_are_refused); }

}  // namespace
}  // namespace check
