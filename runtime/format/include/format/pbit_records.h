// Record layouts of the .pbit file, version 1: the C++ half of the contract.
// The Python half is phonebit/format/records.py; docs/format.md explains every field. Numbers of operators
// and of epilogue steps are those of the tables in ops/operators.h and ops/steps.h. A reference to a record
// is its index; kNone means "absent". All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::format {

inline constexpr char kMagic[4] = {'P', 'B', 'I', 'T'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kAlignment = 64;
inline constexpr int32_t kNone = -1;
inline constexpr uint32_t kOptionalSection = 0x8000;

enum class SectionKind : uint32_t {
  kStrings = 1,
  kTensors = 2,
  kConstants = 3,
  kOperands = 4,
  kSteps = 5,
  kOps = 6,
  kInputs = 7,
  kOutputs = 8,
  kData = 9,
  kMetadata = 0x8001,
  kPreprocessing = 0x8002,
  kLabels = 0x8003,
  kDetection = 0x8004,
  kExecutionPlans = 0x8005,
  kPlanParts = 0x8006,
};

enum class DataType : uint32_t { kBit = 0, kU8 = 1, kI32 = 2, kF32 = 3, kF16 = 4, kI8 = 5 };

/// Bytes of one element of a constant; those of kBit are words.
constexpr uint32_t element_bytes(DataType dtype) {
  return dtype == DataType::kI8 ? 1 : dtype == DataType::kF16 ? 2 : 4;
}

enum class ThresholdKind : uint32_t { kNone = 0, kI32 = 1, kF32 = 2 };

inline constexpr uint32_t kMaxAnchors = 16;

struct Header {
  char magic[4];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t section_count;
  uint64_t file_bytes;
  uint64_t section_table_offset;
  uint32_t crc32;
  uint32_t reserved[7];
};

struct SectionRecord {
  uint32_t kind;
  uint32_t record_bytes;
  uint64_t offset;
  uint64_t size_bytes;
  uint64_t count;
};

struct TensorRecord {
  uint32_t name_offset;
  uint32_t dtype;
  uint32_t height;
  uint32_t width;
  uint32_t channels;
  uint32_t reserved[3];
};

struct ConstantRecord {
  uint32_t dtype;
  uint32_t reserved;
  uint64_t count;
  uint64_t offset;
  uint64_t size_bytes;
};

struct StepRecord {
  uint32_t kind;
  int32_t tensor;
  int32_t constant_a;
  int32_t constant_b;
  float value_a;
  float value_b;
  uint32_t reserved[2];
};

struct OpRecord {
  uint32_t kind;
  uint32_t name_offset;
  uint32_t operand_begin;
  uint32_t operand_count;
  int32_t value_output;
  int32_t bits_output;
  int32_t weights;
  int32_t threshold;
  uint32_t threshold_kind;
  uint32_t step_begin;
  uint32_t step_count;
  int32_t flip_mask;
  uint32_t kernel_h;
  uint32_t kernel_w;
  uint32_t stride_h;
  uint32_t stride_w;
  uint32_t dilation_h;
  uint32_t dilation_w;
  uint32_t pad_top;
  uint32_t pad_left;
  uint32_t pad_bottom;
  uint32_t pad_right;
  float pad_value;
  uint32_t groups;
  int32_t input_mul;
  int32_t input_add;
  uint32_t planes;
  uint32_t reserved[5];
};

struct PreprocessingRecord {
  uint32_t input;
  uint32_t color_order;
  uint32_t resize;
  uint32_t resize_to;
  uint32_t fill_level;
  uint32_t interpolation;
  double low;
  double high;
  double mean[4];
  double deviation[4];
  uint32_t reserved[6];
};

struct DetectionRecord {
  uint32_t output;
  uint32_t kind;
  uint32_t anchor_count;
  float anchors[32];  // width and height of kMaxAnchors anchors
  uint32_t reserved[5];
};

struct PlanRecord {
  uint32_t device_offset;
  uint32_t method_offset;
  uint32_t part_begin;
  uint32_t part_count;
  double predicted_ms;
  uint32_t reserved[10];
};

struct PlanPartRecord {
  uint32_t stage;
  uint32_t processor;
  uint32_t layer;
  uint32_t row_begin;
  uint32_t row_end;
  uint32_t channel_begin;
  uint32_t channel_end;
  uint32_t reserved;
};

static_assert(sizeof(Header) == 64 && offsetof(Header, crc32) == 32);
static_assert(sizeof(SectionRecord) == 32);
static_assert(sizeof(TensorRecord) == 32);
static_assert(sizeof(ConstantRecord) == 32);
static_assert(sizeof(StepRecord) == 32);
static_assert(sizeof(OpRecord) == 128 && offsetof(OpRecord, input_add) == 100);
static_assert(sizeof(PreprocessingRecord) == 128 && offsetof(PreprocessingRecord, low) == 24);
static_assert(sizeof(DetectionRecord) == 160 && offsetof(DetectionRecord, anchors) == 12);
static_assert(sizeof(PlanRecord) == 64 && offsetof(PlanRecord, predicted_ms) == 16);
static_assert(sizeof(PlanPartRecord) == 32);

}  // namespace phonebit::engine::format
