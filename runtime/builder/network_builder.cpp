#include "builder/network_builder.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>

#include "loader/loader.h"
#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

using format::DataType;
using format::kNone;
using format::OpKind;
using format::OpRecord;
using loader::Limits;

DataType data_type(ElementType type) {
  switch (type) {
    case ElementType::bit:
      return DataType::kBit;
    case ElementType::u8:
      return DataType::kU8;
    case ElementType::f32:
      break;
  }
  return DataType::kF32;
}

void check_name(const std::string& name, const char* what) {
  if (name.empty() || name.size() > Limits::kNameBytes)
    fail(ErrorCode::input, "%s: got a text of %zu bytes, expected 1 to %zu", what, name.size(),
         Limits::kNameBytes);
}

/// A text in JSON.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20)
      result += format_text("\\u%04x", code);
    else if (c == '"' || c == '\\')
      result += {'\\', c};
    else
      result += c;
  }
  return result + "\"";
}

void set_window(OpRecord& op, const Window& window) {
  op.kernel_h = static_cast<uint32_t>(window.kernel_height);
  op.kernel_w = static_cast<uint32_t>(window.kernel_width);
  op.stride_h = static_cast<uint32_t>(window.stride_height);
  op.stride_w = static_cast<uint32_t>(window.stride_width);
  op.dilation_h = static_cast<uint32_t>(window.dilation_height);
  op.dilation_w = static_cast<uint32_t>(window.dilation_width);
  op.pad_top = static_cast<uint32_t>(window.pad_top);
  op.pad_left = static_cast<uint32_t>(window.pad_left);
  op.pad_bottom = static_cast<uint32_t>(window.pad_bottom);
  op.pad_right = static_cast<uint32_t>(window.pad_right);
}

}  // namespace

OpRecord op_of(OpKind kind, const Window& window) {
  OpRecord op{};
  op.kind = static_cast<uint32_t>(kind);
  op.value_output = op.bits_output = op.weights = op.threshold = op.flip_mask = kNone;
  op.groups = 1;
  op.input_mul = 1;
  set_window(op, window);
  return op;
}

NetworkBuilder::NetworkBuilder(const std::string& name) {
  check_name(name, "name of the network");
  writer_.metadata = "{\"name\": " + quoted(name) + ", \"producer\": \"phonebit_builder\"}";
}

const TensorInfo& NetworkBuilder::tensor(int number) const {
  if (number < 1 || static_cast<size_t>(number) > tensors_.size())
    fail(ErrorCode::input, "tensor %d does not exist; expected a number that a layer gave, 1 to %zu", number,
         tensors_.size());
  return tensors_[static_cast<size_t>(number) - 1];
}

int NetworkBuilder::input(const std::string& name, ElementType dtype, int height, int width, int channels) {
  check_name(name, "name of an input");
  if (names_.count(name) > 0) fail(ErrorCode::input, "input '%s': this name is taken", name.c_str());
  if (dtype == ElementType::bit)
    fail(ErrorCode::input, "input '%s': type is bit, expected u8 or f32", name.c_str());
  for (const int extent : {height, width, channels})
    if (extent < 1 || static_cast<uint32_t>(extent) > Limits::kExtent)
      fail(ErrorCode::input, "input '%s': %dx%dx%d, expected each to be 1 to %" PRIu32, name.c_str(), height,
           width, channels, Limits::kExtent);
  const TensorInfo info{name, dtype, height, width, channels};
  check_tensor(info);
  const int number = add_tensor(info);
  writer_.inputs.push_back(static_cast<uint32_t>(number - 1));
  return number;
}

int NetworkBuilder::max_pool(int input, Pool layer) {
  return pool(input, layer, OpKind::kMaxPool2d, "max_pool");
}

int NetworkBuilder::average_pool(int input, Pool layer) {
  return pool(input, layer, OpKind::kAveragePool2d, "average_pool");
}

int NetworkBuilder::pool(int input, Pool& layer, OpKind kind, const char* kind_name) {
  TensorInfo out = tensor(input);
  out.name = layer_name(layer.name, kind_name);
  const std::string where = "layer '" + out.name + "'";
  const bool takes_bits = ops::has_type(ops::traits(kind).operands, DataType::kBit);
  if (out.dtype == ElementType::u8 || (out.dtype == ElementType::bit && !takes_bits))
    fail(ErrorCode::input, "%s: tensor '%s' is %s, expected %s; a pointwise layer makes values of it",
         where.c_str(), tensor(input).name.c_str(), out.dtype == ElementType::u8 ? "u8" : "bits",
         takes_bits ? "bits or f32" : "f32");
  if (layer.window.kernel_height == 0 && layer.window.kernel_width == 0) {
    layer.window.kernel_height = out.height;
    layer.window.kernel_width = out.width;
  }
  const MapSize size = output_size(layer.window, {out.height, out.width}, true, where);
  out.height = size.height;
  out.width = size.width;
  check_tensor(out);
  const auto channels = static_cast<size_t>(out.channels);
  OpRecord op = op_of(kind, layer.window);
  if (layer.gamma.is_given()) {
    if (out.dtype != ElementType::bit)
      fail(ErrorCode::input, "%s: gamma is for max pools of bits, tensor '%s' is f32", where.c_str(),
           tensor(input).name.c_str());
    // A filter of one tap: its signs are the channels that keep the maximum.
    std::vector<float> gamma = one_a_channel(layer.gamma, channels, 1.0f, "gamma", where);
    std::transform(gamma.begin(), gamma.end(), gamma.begin(),
                   [](float g) { return g < 0.0f ? 1.0f : -1.0f; });
    Weights minimum;
    minimum.values = {gamma.data(), gamma.size()};
    op.flip_mask = writer_.constant(DataType::kBit, pack_filters(minimum, {1, 1, channels}, {}));
  }
  return add_op(op, input, out, {});
}

int NetworkBuilder::pointwise(int input, const std::string& name, const Epilogue& epilogue) {
  TensorInfo out = tensor(input);
  out.name = layer_name(name, "pointwise");
  out.dtype = epilogue.output == OutputKind::signs ? ElementType::bit : ElementType::f32;
  check_tensor(out);
  const Finish end = finish(epilogue, out, nullptr, "layer '" + out.name + "'");
  OpRecord op = op_of(OpKind::kElementwise, Window{});
  return add_op(op, input, out, end);
}

int NetworkBuilder::softmax(int input, const std::string& name) {
  TensorInfo out = tensor(input);
  out.name = layer_name(name, "softmax");
  if (out.dtype != ElementType::f32)
    fail(ErrorCode::input, "layer '%s': tensor '%s' holds no f32 values, which softmax needs",
         out.name.c_str(), tensor(input).name.c_str());
  check_tensor(out);
  OpRecord op = op_of(OpKind::kSoftmax, Window{});
  return add_op(op, input, out, {});
}

void NetworkBuilder::output(int number) {
  const TensorInfo& info = tensor(number);
  const auto index = static_cast<uint32_t>(number - 1);
  for (const std::vector<uint32_t>* list : {&writer_.inputs, &writer_.outputs})
    if (std::find(list->begin(), list->end(), index) != list->end())
      fail(ErrorCode::input, "output '%s': this tensor is an input or an output already", info.name.c_str());
  writer_.outputs.push_back(index);
}

void NetworkBuilder::labels(const std::vector<std::string>& names) {
  if (names.size() > Limits::kLabels)
    fail(ErrorCode::input, "labels: got %zu, expected at most %zu", names.size(), Limits::kLabels);
  for (const std::string& name : names) check_name(name, "label");
  std::vector<uint32_t> offsets;
  for (const std::string& name : names) offsets.push_back(writer_.name(name));
  writer_.labels = std::move(offsets);
}

void NetworkBuilder::preprocessing(const Preprocessing& rule) {
  format::PreprocessingRecord record{};
  record.input = static_cast<uint32_t>(rule.input);
  record.color_order = static_cast<uint32_t>(rule.color_order);
  record.resize = static_cast<uint32_t>(rule.resize);
  record.resize_to = static_cast<uint32_t>(rule.resize_to);
  record.fill_level = static_cast<uint32_t>(rule.fill_level);
  record.interpolation = static_cast<uint32_t>(rule.interpolation);
  record.low = rule.low;
  record.high = rule.high;
  std::copy(std::begin(rule.mean), std::end(rule.mean), record.mean);
  std::copy(std::begin(rule.deviation), std::end(rule.deviation), record.deviation);
  for (format::PreprocessingRecord& known : writer_.preprocessing) {
    if (known.input != record.input) continue;
    known = record;
    return;
  }
  writer_.preprocessing.push_back(record);
}

memory::AlignedBuffer NetworkBuilder::file() const {
  if (writer_.outputs.empty()) fail(ErrorCode::input, "the network has no output; name one");
  if (!writer_.labels.empty()) {
    const TensorInfo& first = tensors_[writer_.outputs[0]];
    if (writer_.labels.size() != static_cast<size_t>(first.channels))
      fail(ErrorCode::input, "labels: got %zu, expected one for each of %d channels of output '%s'",
           writer_.labels.size(), first.channels, first.name.c_str());
  }
  memory::AlignedBuffer bytes = writer_.file();
  loader::load_model(loader::FileBytes::of_memory(bytes.data(), bytes.size(), {true}));
  return bytes;
}

std::string NetworkBuilder::layer_name(const std::string& given, const char* kind) const {
  const std::string name =
      given.empty() ? std::string(kind) + "_" + std::to_string(writer_.ops.size() + 1) : given;
  check_name(name, "name of a layer");
  if (names_.count(name) > 0) fail(ErrorCode::input, "layer '%s': this name is taken", name.c_str());
  return name;
}

void NetworkBuilder::check_tensor(const TensorInfo& info) const {
  const int64_t elements = int64_t{info.height} * info.width;  // each at most 2^20
  if (elements > Limits::kElements / info.channels)
    fail(ErrorCode::input, "tensor '%s': %dx%dx%d are more elements than this engine's limit, %" PRId64,
         info.name.c_str(), info.height, info.width, info.channels, Limits::kElements);
  if (tensors_.size() >= Limits::kRecords)
    fail(ErrorCode::input, "tensor '%s': there are %zu tensors already, this engine's limit",
         info.name.c_str(), tensors_.size());
}

int NetworkBuilder::add_tensor(const TensorInfo& info) {
  format::TensorRecord record{};
  record.name_offset = writer_.name(info.name);
  record.dtype = static_cast<uint32_t>(data_type(info.dtype));
  record.height = static_cast<uint32_t>(info.height);
  record.width = static_cast<uint32_t>(info.width);
  record.channels = static_cast<uint32_t>(info.channels);
  names_.insert(info.name);
  tensors_.push_back(info);
  writer_.tensors.push_back(record);
  return static_cast<int>(tensors_.size());
}

int NetworkBuilder::add_op(OpRecord& op, int input, const TensorInfo& out, const Finish& finish) {
  const int number = add_tensor(out);
  op.name_offset = writer_.name(out.name);
  (out.dtype == ElementType::bit ? op.bits_output : op.value_output) = number - 1;
  op.operand_begin = static_cast<uint32_t>(writer_.operands.size());
  op.operand_count = 1;
  writer_.operands.push_back(static_cast<uint32_t>(input - 1));
  op.step_begin = static_cast<uint32_t>(writer_.steps.size());
  op.step_count = static_cast<uint32_t>(finish.steps.size());
  writer_.steps.insert(writer_.steps.end(), finish.steps.begin(), finish.steps.end());
  op.threshold_kind = static_cast<uint32_t>(finish.kind);
  if (finish.kind == format::ThresholdKind::kI32)
    op.threshold = writer_.constant(DataType::kI32, finish.integers.threshold);
  else if (!finish.threshold.empty())
    op.threshold = writer_.constant(DataType::kF32, finish.threshold);
  writer_.ops.push_back(op);
  return number;
}

}  // namespace phonebit::engine::builder
