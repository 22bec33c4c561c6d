// The outer layer of a .pbit file: header, checksum and section table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "format/pbit_records.h"

namespace phonebit::engine::loader {

/// The bytes of one section.
struct Section {
  const std::byte* data = nullptr;
  uint64_t size = 0;
  uint64_t count = 0;

  /// The records, copied out of the file.
  template <class Record>
  std::vector<Record> records() const {
    std::vector<Record> result(static_cast<size_t>(count));
    if (count > 0) std::memcpy(result.data(), data, static_cast<size_t>(count) * sizeof(Record));
    return result;
  }
};

/// All sections of version 1; the last six are empty where the file has none.
struct Sections {
  Section strings, tensors, constants, operands, steps, ops, inputs, outputs, data, metadata, preprocessing,
      labels, detection, plans, plan_parts;
};

/// Checks everything that can be checked without looking into sections: magic, version, sizes, checksum,
/// bounds, alignment, overlaps, gaps, record sizes. Throws Error(format). The result points into `file`.
Sections read_sections(const std::byte* file, size_t size);

}  // namespace phonebit::engine::loader
