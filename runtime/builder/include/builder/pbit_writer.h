// A .pbit file put together in memory: records and constants to bytes, bytes to disk (docs/format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/pbit_records.h"
#include "memory/aligned_buffer.h"

namespace phonebit::engine::builder {

/// Collects the sections of one file; nothing in them is checked here. One thread at a time.
class PbitWriter {
 public:
  std::vector<format::TensorRecord> tensors;
  std::vector<uint32_t> operands, inputs, outputs, labels;
  std::vector<format::StepRecord> steps;
  std::vector<format::OpRecord> ops;
  std::vector<format::PreprocessingRecord> preprocessing;
  std::string metadata;  ///< JSON

  /// Offset of a name in STRINGS; equal names are stored once.
  uint32_t name(const std::string& text);
  /// Index of a constant with a copy of these elements (BIT: words).
  int32_t constant(format::DataType dtype, const void* elements, size_t count);
  template <class T>
  int32_t constant(format::DataType dtype, const std::vector<T>& elements) {
    return constant(dtype, elements.data(), elements.size());
  }

  /// The whole file, sealed by its checksum. Allocates. Throws Error(device) where memory is short.
  memory::AlignedBuffer file() const;

 private:
  std::string strings_;
  std::map<std::string, uint32_t> names_;
  std::vector<format::ConstantRecord> constants_;
  std::vector<std::byte> data_;
};

/// Puts `bytes` at `path` in one step: readers see the old file or the whole new one. On failure the old one
/// is untouched. Blocks until the bytes are on the disk. Throws Error(input), naming the path.
void replace_file(const std::string& path, const memory::AlignedBuffer& bytes);

}  // namespace phonebit::engine::builder
