// A network as read from a .pbit file: validated, immutable, independent of any processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/pbit_records.h"
#include "loader/file_bytes.h"
#include "memory/aligned_buffer.h"
#include "ops/operators.h"
#include "ops/steps.h"
#include "types/detection.h"
#include "types/plan.h"
#include "types/preprocessing.h"

namespace phonebit::engine::loader {

/// One activation tensor: NHWC without the batch.
struct Tensor {
  std::string name;
  format::DataType dtype;
  int height, width, channels;

  int64_t pixels() const { return int64_t{height} * width; }
  int64_t elements() const { return pixels() * channels; }
  /// u32 words of one packed pixel.
  int words() const { return (channels + 31) / 32; }
  /// Bytes of one image in memory.
  size_t bytes() const;
  /// "3x4x64 bit", for messages.
  std::string describe() const;
};

/// One array of the DATA section; lies in the file's bytes, or in Model::index_copies.
struct Constant {
  format::DataType dtype;
  uint64_t count;
  const std::byte* data;

  uint64_t bytes() const { return count * format::element_bytes(dtype); }
  const float* f32() const { return reinterpret_cast<const float*>(data); }
  /// The bits of IEEE halves, all finite.
  const uint16_t* f16() const { return reinterpret_cast<const uint16_t*>(data); }
  /// -127 to 127.
  const int8_t* i8() const { return reinterpret_cast<const int8_t*>(data); }
  const int32_t* i32() const { return reinterpret_cast<const int32_t*>(data); }
  const uint32_t* words() const { return reinterpret_cast<const uint32_t*>(data); }
};

/// One op with its lists resolved; `record` keeps the scalar attributes.
struct Op {
  std::string name;
  format::OpKind kind;
  format::OpRecord record;
  std::vector<int> operands;
  std::vector<format::StepRecord> steps;

  const ops::Operator& traits() const { return ops::traits(kind); }
  format::ThresholdKind threshold_kind() const {
    return static_cast<format::ThresholdKind>(record.threshold_kind);
  }
  /// The output that exists; when there are two, both have the same shape.
  /// Value output, then bits outputs, where they exist.
  std::vector<int> outputs() const;
  int any_output() const { return record.value_output >= 0 ? record.value_output : record.bits_output; }
};

/// The whole network. Every index, shape, count and order was checked by load_model (docs/format.md), so that
/// code that executes it needs no further checks. Move-only; constants point into `file`.
/// Tables are copies: later changes of the file cannot invalidate what was checked.
struct Model {
  FileBytes file;
  std::vector<Tensor> tensors;
  std::vector<Constant> constants;
  /// Of i32 constants (channel numbers, thresholds) of a file used in place: what may be an index is
  /// never read from bytes that somebody else could change after the check.
  std::vector<memory::AlignedBuffer> index_copies;
  std::vector<Op> ops;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string metadata;                      // JSON or empty
  std::vector<Preprocessing> preprocessing;  // at most one per input
  std::vector<DetectionHead> detection;      // at most one per output
  std::vector<std::string> labels;           // one per class of the first output, or none
  std::vector<ExecutionPlan> plans;          // at most one per device; not checked by check_plan

  const Tensor& tensor(int index) const { return tensors[static_cast<size_t>(index)]; }
  const Constant& constant(int index) const { return constants[static_cast<size_t>(index)]; }
  const Tensor& operand(const Op& op, size_t i = 0) const { return tensor(op.operands[i]); }
  const Tensor& output(const Op& op) const { return tensor(op.any_output()); }
  /// Multiply-accumulates of one image; 0 for ops that are not convolutions.
  int64_t macs(const Op& op) const;
};

/// What the engine knows of a step's kind.
inline const ops::Step& traits(const format::StepRecord& step) {
  return ops::traits(static_cast<format::StepKind>(step.kind));
}
/// "bit", "u8", "i32", "f32", "f16" or "i8".
const char* name_of(format::DataType dtype);

}  // namespace phonebit::engine::loader
