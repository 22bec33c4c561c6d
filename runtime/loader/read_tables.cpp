#include <cinttypes>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "loader/loader.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::DataType;

/// Length of the valid UTF-8 sequence at text[at], or 0 (RFC 3629: no overlong forms, no surrogates).
size_t utf8_length(const unsigned char* text, size_t size, size_t at) {
  const unsigned lead = text[at];
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size - at < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((text[at + i] & 0xC0) != 0x80) return 0;
  }
  const unsigned second = text[at + 1];
  const bool is_bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return is_bad ? 0 : length;
}

void check_utf8(const Section& section, const char* name) {
  const auto* text = reinterpret_cast<const unsigned char*>(section.data);
  const auto size = static_cast<size_t>(section.size);
  for (size_t at = 0; at < size;) {
    const size_t length = utf8_length(text, size, at);
    if (length == 0) fail_damaged("section %s: byte %zu is not valid UTF-8", name, at);
    at += length;
  }
}

void check_count(const Section& section, const char* name) {
  if (section.count > Limits::kRecords)
    fail(ErrorCode::format, "section %s: %" PRIu64 " records, this engine takes at most %zu", name,
         section.count, Limits::kRecords);
}

Tensor read_tensor(const Section& strings, const format::TensorRecord& record, size_t index) {
  Tensor tensor;
  tensor.name = name_at(strings, record.name_offset, "tensor", index);
  tensor.dtype = static_cast<DataType>(record.dtype);
  if (tensor.dtype != DataType::kBit && tensor.dtype != DataType::kU8 && tensor.dtype != DataType::kF32)
    fail_damaged("tensor %zu '%s': dtype %" PRIu32 ", expected 0 (bit), 1 (u8) or 3 (f32)", index,
                 tensor.name.c_str(), record.dtype);
  for (const uint32_t extent : {record.height, record.width, record.channels}) {
    if (extent < 1 || extent > Limits::kExtent)
      fail_damaged("tensor %zu '%s': shape %" PRIu32 "x%" PRIu32 "x%" PRIu32 ", each must be 1 to %" PRIu32,
                   index, tensor.name.c_str(), record.height, record.width, record.channels, Limits::kExtent);
  }
  tensor.height = static_cast<int>(record.height);
  tensor.width = static_cast<int>(record.width);
  tensor.channels = static_cast<int>(record.channels);
  // Two products of at most 2^40: pixels first, so that the second cannot overflow.
  if (tensor.pixels() > Limits::kElements || tensor.elements() > Limits::kElements)
    fail_damaged("tensor %zu '%s': %s has more than %" PRId64 " elements", index, tensor.name.c_str(),
                 tensor.describe().c_str(), Limits::kElements);
  return tensor;
}

Constant read_constant(const Section& data, const format::ConstantRecord& record, size_t index) {
  const auto dtype = static_cast<DataType>(record.dtype);
  if (dtype != DataType::kBit && dtype != DataType::kI32 && dtype != DataType::kF32 &&
      dtype != DataType::kF16 && dtype != DataType::kI8)
    fail_damaged("constant %zu: dtype %" PRIu32 ", expected 0 (bit), 2 (i32), 3 (f32), 4 (f16) or 5 (i8)",
                 index, record.dtype);
  const uint32_t element_bytes = format::element_bytes(dtype);
  if (record.size_bytes % element_bytes != 0 || record.count != record.size_bytes / element_bytes)
    fail_damaged("constant %zu: %" PRIu64 " elements of %" PRIu32 " bytes do not make %" PRIu64 " bytes",
                 index, record.count, element_bytes, record.size_bytes);
  if (record.offset % format::kAlignment != 0)
    fail_damaged("constant %zu: offset %" PRIu64 " is not a multiple of %" PRIu32, index, record.offset,
                 format::kAlignment);
  if (record.size_bytes > data.size || record.offset > data.size - record.size_bytes)
    fail_damaged("constant %zu: %" PRIu64 " bytes at %" PRIu64 " exceed DATA (%" PRIu64 " bytes)", index,
                 record.size_bytes, record.offset, data.size);
  return {dtype, record.count, data.data + record.offset};
}

/// Constants may share a place, but not overlap otherwise: checks of their content take as long as the file
/// is large, not as long as the sum of all constants.
void check_places(const Section& data, const Model& model) {
  std::set<std::pair<const std::byte*, uint64_t>> places;
  uint64_t total = 0;
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const Constant& constant = model.constants[i];
    if (places.insert({constant.data, constant.bytes()}).second) total += constant.bytes();
    if (total > data.size)
      fail_damaged("constant %zu overlaps another; expected the same place or a place of its own", i);
  }
}

/// Moves the i32 constants of a file that is used in place into Model::index_copies.
void copy_indices(Model& model) {
  std::map<std::pair<const std::byte*, uint64_t>, const std::byte*> copies;
  for (Constant& constant : model.constants) {
    if (constant.dtype != DataType::kI32 || constant.count == 0) continue;
    const std::byte*& copy = copies[{constant.data, constant.bytes()}];
    if (copy == nullptr) {
      model.index_copies.emplace_back(static_cast<size_t>(constant.bytes()), "a copy of i32 constants");
      std::memcpy(model.index_copies.back().data(), constant.data, model.index_copies.back().size());
      copy = model.index_copies.back().data();
    }
    constant.data = copy;
  }
}

std::vector<int> read_terminals(const Section& section, const char* name, const Model& model,
                                DataType also_allowed) {
  if (section.count == 0) fail_damaged("section %s is empty, expected at least one tensor", name);
  check_count(section, name);
  std::vector<int> result;
  std::vector<bool> seen(model.tensors.size());
  for (const uint32_t index : section.records<uint32_t>()) {
    if (index >= model.tensors.size())
      fail_damaged("section %s: tensor %" PRIu32 " does not exist, there are %zu", name, index,
                   model.tensors.size());
    const Tensor& tensor = model.tensors[index];
    if (tensor.dtype != DataType::kF32 && tensor.dtype != also_allowed)
      fail_damaged("section %s: tensor '%s' is %s, expected f32 or %s", name, tensor.name.c_str(),
                   name_of(tensor.dtype), name_of(also_allowed));
    if (seen[index]) fail_damaged("section %s: tensor '%s' is listed twice", name, tensor.name.c_str());
    seen[index] = true;
    result.push_back(static_cast<int>(index));
  }
  return result;
}

/// Classes of the first output: its channels, or what its anchors leave of them.
int64_t class_count(const Model& model) {
  const int64_t channels = model.tensor(model.outputs.front()).channels;
  for (const DetectionHead& head : model.detection) {
    if (head.output == 0) return channels / static_cast<int64_t>(head.anchors.size()) - Limits::kBoxNumbers;
  }
  return channels;
}

void read_labels(const Sections& sections, Model& model) {
  const uint64_t count = sections.labels.count;
  if (count == 0) return;
  const int64_t classes = class_count(model);
  if (count != static_cast<uint64_t>(classes))
    fail_damaged("section LABELS: %" PRIu64 " labels for the %" PRId64 " classes of output '%s'", count,
                 classes, model.tensor(model.outputs.front()).name.c_str());
  if (count > Limits::kLabels)
    fail(ErrorCode::format, "section LABELS: %" PRIu64 " labels, this engine takes at most %zu", count,
         Limits::kLabels);
  for (const uint32_t offset : sections.labels.records<uint32_t>())
    model.labels.push_back(name_at(sections.strings, offset, "label", model.labels.size()));
}

void check_list(const std::string& op, size_t index, const char* list, uint32_t begin, uint32_t count,
                size_t size) {
  if (uint64_t{begin} + count > size)
    fail_damaged("op %zu '%s': %s %" PRIu32 "+%" PRIu32 " exceed the table of %zu", index, op.c_str(), list,
                 begin, count, size);
}

}  // namespace

std::string name_at(const Section& strings, uint32_t offset, const char* what, size_t index) {
  if (offset >= strings.size)
    fail_damaged("%s %zu: name_offset %" PRIu32 " is outside STRINGS (%" PRIu64 " bytes)", what, index,
                 offset, strings.size);
  const char* name = reinterpret_cast<const char*>(strings.data) + offset;
  const size_t length = std::strlen(name);
  if (length > Limits::kNameBytes)
    fail_damaged("%s %zu: the name has %zu bytes, at most %zu are allowed", what, index, length,
                 Limits::kNameBytes);
  return {name, length};
}

void read_tables(const Sections& sections, Model& model) {
  if (sections.strings.size > 0 && sections.strings.data[sections.strings.size - 1] != std::byte{0})
    fail_damaged("section STRINGS does not end with a zero byte");
  check_utf8(sections.strings, "STRINGS");
  check_utf8(sections.metadata, "METADATA");
  check_count(sections.tensors, "TENSORS");

  std::set<std::string> names;
  const auto tensors = sections.tensors.records<format::TensorRecord>();
  for (size_t i = 0; i < tensors.size(); ++i) {
    model.tensors.push_back(read_tensor(sections.strings, tensors[i], i));
    if (!names.insert(model.tensors.back().name).second)
      fail_damaged("tensor %zu: the name '%s' is taken by an earlier tensor", i,
                   model.tensors.back().name.c_str());
  }
  const auto constants = sections.constants.records<format::ConstantRecord>();
  for (size_t i = 0; i < constants.size(); ++i)
    model.constants.push_back(read_constant(sections.data, constants[i], i));
  check_places(sections.data, model);
  if (model.file.is_in_place()) copy_indices(model);
  model.inputs = read_terminals(sections.inputs, "INPUTS", model, DataType::kU8);
  model.outputs = read_terminals(sections.outputs, "OUTPUTS", model, DataType::kBit);
  if (sections.metadata.size > 0)
    model.metadata.assign(reinterpret_cast<const char*>(sections.metadata.data),
                          static_cast<size_t>(sections.metadata.size));
  read_detection(sections, model);
  read_labels(sections, model);
}

void read_ops(const Sections& sections, Model& model) {
  check_count(sections.ops, "OPS");
  const auto operands = sections.operands.records<uint32_t>();
  const auto steps = sections.steps.records<format::StepRecord>();
  const auto records = sections.ops.records<format::OpRecord>();
  size_t list_entries = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const format::OpRecord& record = records[i];
    Op op;
    op.name = name_at(sections.strings, record.name_offset, "op", i);
    op.kind = static_cast<format::OpKind>(record.kind);
    op.record = record;
    if (!ops::is_operator(record.kind))
      fail(ErrorCode::format,
           "op %zu '%s': unknown kind %" PRIu32 "; update PhoneBit or convert the model again", i,
           op.name.c_str(), record.kind);
    check_list(op.name, i, "operands", record.operand_begin, record.operand_count, operands.size());
    check_list(op.name, i, "steps", record.step_begin, record.step_count, steps.size());
    // Ops may share lists, so what they resolve to can exceed the file by far.
    list_entries += size_t{record.operand_count} + record.step_count;
    if (list_entries > Limits::kListEntries)
      fail(ErrorCode::format, "op %zu '%s': more than %zu operands and steps in all", i, op.name.c_str(),
           Limits::kListEntries);
    const auto first_operand = operands.begin() + record.operand_begin;
    for (auto operand = first_operand; operand != first_operand + record.operand_count; ++operand) {
      if (*operand >= model.tensors.size())
        fail_damaged("op %zu '%s': operand tensor %" PRIu32 " does not exist, there are %zu", i,
                     op.name.c_str(), *operand, model.tensors.size());
      op.operands.push_back(static_cast<int>(*operand));
    }
    op.steps.assign(steps.begin() + record.step_begin, steps.begin() + record.step_begin + record.step_count);
    model.ops.push_back(std::move(op));
  }
}

}  // namespace phonebit::engine::loader
