// A small network as .pbit bytes, for tests of the loader: every kind of record, written from docs/format.md.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "format/pbit_records.h"
#include "loader/crc32.h"
#include "ops/operators.h"
#include "ops/steps.h"

namespace phonebit::engine::test {

using Bytes = std::vector<unsigned char>;

/// Collects records; bytes() lays them out.
class ModelWriter {
 public:
  uint32_t tensor(const std::string& name, format::DataType dtype, uint32_t height, uint32_t width,
                  uint32_t channels) {
    tensors_.push_back({string(name), static_cast<uint32_t>(dtype), height, width, channels, {}});
    return static_cast<uint32_t>(tensors_.size() - 1);
  }

  template <class T>
  int32_t constant(format::DataType dtype, const std::vector<T>& values) {
    static_assert(sizeof(T) == 4);
    data_.resize((data_.size() + 63) / 64 * 64);
    constants_.push_back({static_cast<uint32_t>(dtype), 0, values.size(), data_.size(), 4 * values.size()});
    append(data_, values);
    return static_cast<int32_t>(constants_.size() - 1);
  }

  /// An op without weights, steps and window; the caller fills the rest in.
  format::OpRecord& op(format::OpKind kind, const std::string& name, const std::vector<uint32_t>& operands) {
    format::OpRecord record{};
    record.kind = static_cast<uint32_t>(kind);
    record.name_offset = string(name);
    record.operand_begin = static_cast<uint32_t>(operands_.size());
    record.operand_count = static_cast<uint32_t>(operands.size());
    record.value_output = record.bits_output = record.weights = record.threshold = record.flip_mask =
        format::kNone;
    record.kernel_h = record.kernel_w = record.stride_h = record.stride_w = 1;
    record.dilation_h = record.dilation_w = record.groups = 1;
    record.input_mul = 1;
    record.step_begin = static_cast<uint32_t>(steps_.size());
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    ops_.push_back(record);
    return ops_.back();
  }

  /// Adds a step to the last op.
  void step(format::StepKind kind, int32_t tensor, int32_t a, int32_t b) {
    steps_.push_back({static_cast<uint32_t>(kind), tensor, a, b, 0.0f, 1.0f, {}});
    ++ops_.back().step_count;
  }

  void label(const std::string& name) { labels_.push_back(string(name)); }

  void detection(const format::DetectionRecord& record) { detection_.push_back(record); }

  void preprocessing(const format::PreprocessingRecord& record) { preprocessing_.push_back(record); }

  /// A plan of the parts that follow the last plan's.
  void plan(const std::string& device, const std::vector<format::PlanPartRecord>& parts) {
    plans_.push_back({string(device),
                      string("user"),
                      static_cast<uint32_t>(plan_parts_.size()),
                      static_cast<uint32_t>(parts.size()),
                      0.5,
                      {}});
    plan_parts_.insert(plan_parts_.end(), parts.begin(), parts.end());
  }

  Bytes bytes(const std::vector<uint32_t>& inputs, const std::vector<uint32_t>& outputs) const {
    using Kind = format::SectionKind;
    std::vector<std::pair<format::SectionRecord, Bytes>> sections;
    const auto add = [&](Kind kind, const auto& records) {
      Bytes content;
      append(content, records);
      sections.push_back(
          {{static_cast<uint32_t>(kind), sizeof(records[0]), 0, content.size(), records.size()}, content});
    };
    add(Kind::kStrings, strings_);
    add(Kind::kTensors, tensors_);
    add(Kind::kConstants, constants_);
    add(Kind::kOperands, operands_);
    add(Kind::kSteps, steps_);
    add(Kind::kOps, ops_);
    add(Kind::kInputs, inputs);
    add(Kind::kOutputs, outputs);
    add(Kind::kData, data_);
    add(Kind::kMetadata, std::string("{}"));
    add(Kind::kPreprocessing, preprocessing_);
    add(Kind::kLabels, labels_);
    add(Kind::kDetection, detection_);
    add(Kind::kExecutionPlans, plans_);
    add(Kind::kPlanParts, plan_parts_);

    Bytes file(64 + sections.size() * sizeof(format::SectionRecord));
    for (size_t i = 0; i < sections.size(); ++i) {
      file.resize((file.size() + 63) / 64 * 64);
      sections[i].first.offset = file.size();
      std::memcpy(&file[64 + i * sizeof(format::SectionRecord)], &sections[i].first,
                  sizeof(format::SectionRecord));
      file.insert(file.end(), sections[i].second.begin(), sections[i].second.end());
    }
    format::Header header{{'P', 'B', 'I', 'T'},
                          format::kVersion,
                          64,
                          static_cast<uint32_t>(sections.size()),
                          file.size(),
                          64,
                          0,
                          {}};
    std::memcpy(file.data(), &header, sizeof header);
    seal(file);
    return file;
  }

  /// Writes the checksum, so that what is tested is the check after it.
  static void seal(Bytes& file) {
    constexpr size_t kOffset = offsetof(format::Header, crc32);
    if (file.size() < kOffset + 4) return;
    std::memset(&file[kOffset], 0, 4);
    const uint32_t crc = loader::crc32(0, file.data(), file.size());
    std::memcpy(&file[kOffset], &crc, 4);
  }

 private:
  template <class Records>
  static void append(Bytes& bytes, const Records& records) {
    if (records.size() == 0) return;
    const auto* first = reinterpret_cast<const unsigned char*>(records.data());
    bytes.insert(bytes.end(), first, first + records.size() * sizeof(records[0]));
  }

  uint32_t string(const std::string& name) {
    const auto offset = static_cast<uint32_t>(strings_.size());
    strings_.insert(strings_.end(), name.c_str(), name.c_str() + name.size() + 1);
    return offset;
  }

  std::vector<char> strings_;
  std::vector<format::TensorRecord> tensors_;
  std::vector<format::ConstantRecord> constants_;
  std::vector<uint32_t> operands_;
  std::vector<format::StepRecord> steps_;
  std::vector<format::OpRecord> ops_;
  std::vector<format::PreprocessingRecord> preprocessing_;
  std::vector<uint32_t> labels_;
  std::vector<format::DetectionRecord> detection_;
  std::vector<format::PlanRecord> plans_;
  std::vector<format::PlanPartRecord> plan_parts_;
  Bytes data_;
};

/// 6x5x3 u8 -> convolution with integer thresholds (40 channels) -> max-pool of bits with a flip mask ->
/// concat with itself
/// -> grouped binary convolution with every kind of step, value and bits -> reshape, and a float convolution
/// -> softmax, and a selection of channels -> log softmax. Ten labels, preprocessing of the image, and plans
/// for two devices.
inline Bytes small_model() {
  using format::DataType;
  using format::OpKind;
  using format::StepKind;
  ModelWriter model;
  const uint32_t image = model.tensor("image", DataType::kU8, 6, 5, 3);
  const uint32_t bits = model.tensor("bits", DataType::kBit, 6, 5, 40);
  const uint32_t pooled = model.tensor("pooled", DataType::kBit, 3, 2, 40);
  const uint32_t joined = model.tensor("joined", DataType::kBit, 3, 2, 80);
  const uint32_t value = model.tensor("value", DataType::kF32, 3, 2, 4);
  const uint32_t signs = model.tensor("signs", DataType::kBit, 3, 2, 4);
  const uint32_t added = model.tensor("added", DataType::kF32, 3, 2, 4);
  const uint32_t flat = model.tensor("flat", DataType::kF32, 1, 1, 24);
  const uint32_t logits = model.tensor("logits", DataType::kF32, 1, 1, 10);
  const uint32_t scores = model.tensor("scores", DataType::kF32, 1, 1, 10);
  const uint32_t selected = model.tensor("selected", DataType::kF32, 3, 2, 6);
  const uint32_t logs = model.tensor("logs", DataType::kF32, 3, 2, 6);

  auto* op = &model.op(OpKind::kConv2d, "first", {image});
  op->kernel_h = op->kernel_w = 3;
  op->pad_top = op->pad_left = op->pad_bottom = op->pad_right = 1;
  op->input_mul = 2;
  op->input_add = -255;
  op->bits_output = static_cast<int32_t>(bits);
  op->weights = model.constant(DataType::kBit, std::vector<uint32_t>(40 * 9, 5));
  op->threshold_kind = 1;
  op->threshold = model.constant(DataType::kI32, std::vector<int32_t>(40, -7));

  op = &model.op(OpKind::kMaxPool2d, "pool", {bits});
  op->kernel_h = op->kernel_w = op->stride_h = op->stride_w = 2;
  op->bits_output = static_cast<int32_t>(pooled);
  op->flip_mask = model.constant(DataType::kBit, std::vector<uint32_t>{0xF0F0F0F0u, 0xA5u});

  op = &model.op(OpKind::kConcat, "concat", {pooled, pooled});
  op->bits_output = static_cast<int32_t>(joined);

  op = &model.op(OpKind::kBinaryConv2d, "grouped", {joined});
  op->kernel_h = op->kernel_w = 3;
  op->pad_top = op->pad_left = op->pad_bottom = op->pad_right = 1;
  op->groups = 2;
  op->value_output = static_cast<int32_t>(value);
  op->bits_output = static_cast<int32_t>(signs);
  op->weights = model.constant(DataType::kBit, std::vector<uint32_t>(4 * 9 * 2, 0x5Au));
  op->threshold_kind = 2;
  op->threshold = model.constant(DataType::kF32, std::vector<float>(4, 0.5f));
  const int32_t four = model.constant(DataType::kF32, std::vector<float>(4, 0.25f));
  model.step(StepKind::kScaleBias, format::kNone, four, four);
  const int32_t slopes = model.constant(DataType::kF32, std::vector<float>(24, 0.5f));
  model.step(StepKind::kPrelu, format::kNone, slopes, format::kNone);
  model.step(StepKind::kPrelu, format::kNone, slopes, slopes);

  op = &model.op(OpKind::kElementwise, "add", {signs});
  op->value_output = static_cast<int32_t>(added);
  model.step(StepKind::kAdd, static_cast<int32_t>(value), format::kNone, format::kNone);
  model.step(StepKind::kMultiply, static_cast<int32_t>(value), format::kNone, format::kNone);
  model.step(StepKind::kClamp, format::kNone, format::kNone, format::kNone);
  model.step(StepKind::kTanh, format::kNone, format::kNone, format::kNone);
  model.step(StepKind::kRound, format::kNone, format::kNone, format::kNone);
  model.op(OpKind::kReshape, "flatten", {added}).value_output = static_cast<int32_t>(flat);

  op = &model.op(OpKind::kConv2d, "dense", {flat});
  op->value_output = static_cast<int32_t>(logits);
  op->weights = model.constant(DataType::kF32, std::vector<float>(240, 0.125f));
  model.op(OpKind::kSoftmax, "softmax", {logits}).value_output = static_cast<int32_t>(scores);

  op = &model.op(OpKind::kSelectChannels, "select", {added});
  op->value_output = static_cast<int32_t>(selected);
  op->weights = model.constant(DataType::kI32, std::vector<int32_t>{2, 3, -1, 0, 0, 1});
  model.op(OpKind::kLogSoftmax, "log softmax", {selected}).value_output = static_cast<int32_t>(logs);

  for (int i = 0; i < 10; ++i) model.label("class " + std::to_string(i));
  model.preprocessing({0,
                       static_cast<uint32_t>(ColorOrder::bgr),
                       static_cast<uint32_t>(Resize::shorter_side),
                       256,
                       0,
                       static_cast<uint32_t>(Interpolation::bicubic),
                       0.0,
                       1.0,
                       {0.485, 0.456, 0.406, 0.0},
                       {0.229, 0.224, 0.225, 1.0},
                       {}});
  model.plan("cuts", {{0, 1, 0, 0, 6, 0, 16, 0},
                      {0, 0, 0, 0, 6, 16, 40, 0},
                      {1, 1, 1, 0, 2, 0, 40, 0},
                      {1, 0, 1, 2, 3, 0, 40, 0},
                      {2, 0, 2, 0, 3, 0, 80, 0},
                      {2, 0, 3, 0, 3, 0, 4, 0},
                      {2, 0, 4, 0, 3, 0, 4, 0},
                      {3, 1, 5, 0, 1, 0, 24, 0},
                      {3, 1, 6, 0, 1, 0, 10, 0},
                      {3, 1, 7, 0, 1, 0, 10, 0},
                      {3, 0, 8, 0, 3, 0, 6, 0},
                      {3, 0, 9, 0, 3, 0, 6, 0}});
  model.plan("nothing", {});
  return model.bytes({image}, {scores, logits, signs, logs});
}

}  // namespace phonebit::engine::test
