// From the bytes of a file to a validated Model.
#pragma once

#include "loader/model.h"

namespace phonebit::engine::loader {

/// What the engine accepts beyond the rules of docs/format.md; keeps every index computation inside 31 bits
/// and every planning step fast.
struct Limits {
  static constexpr uint32_t kExtent = 1u << 20;          // height, width, channels, padding, window span
  static constexpr int64_t kElements = (1ll << 31) - 1;  // of a tensor, its padded form, or a weight array
  static constexpr int64_t kTaps = 1ll << 24;            // of a window
  static constexpr int64_t kWindow = 1ll
                                     << 29;  // values under a convolution's window: sums of +-2 x fit int32
  static constexpr int64_t kFactor = 1ll << 22;  // elements of one group of a product's second operand
  static constexpr int64_t kAccumulator = (1ll << 31) - 1;
  static constexpr size_t kRecords = 1u << 14;      // tensors, ops
  static constexpr size_t kListEntries = 1u << 20;  // operands and steps of all ops
  static constexpr size_t kNameBytes = 1024;
  static constexpr size_t kLabels = 1u << 16;
  static constexpr size_t kPlans = 1u << 10;
  static constexpr size_t kPlanParts = 1u << 20;
  static constexpr int kBoxNumbers = 5;  // channels of each anchor before its classes: x, y, w, h, objectness
};

/// Reads, checks and resolves a file. Throws Error, without the file's name in its text. Reads every byte
/// once (checksum); constants stay where they are.
Model load_model(FileBytes file);

}  // namespace phonebit::engine::loader
