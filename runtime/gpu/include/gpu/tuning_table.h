// Which kernel is used for which op on which device: bnn_kernels/README.md, "tuning.table".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/device_facts.h"
#include "gpu/kernel_library.h"

namespace phonebit::engine::gpu {

struct TuningEntry {
  std::string op, shape, vendor, family, device;
  KernelChoice choice;
};

/// What the table is asked about a layer.
struct TuningQuery {
  std::string op;         ///< "binary_conv2d", "conv2d_u8", "conv2d_f32", "binary_depthwise_conv2d"
  std::string shape;      ///< class: "dense", "small_pointwise", "small", "pointwise", "window", "large"
  std::string signature;  ///< exact shape, "3x3s1d1g1_64c_56x56_64c"
};

class TuningTable {
 public:
  /// Parses a table. Throws Error(input, "<origin>:<line>: ...") for a malformed line.
  static TuningTable parse(std::string_view text, const std::string& origin);
  /// Puts the entries of `other` before these: where both fit equally well, other's are used.
  void prepend(TuningTable other);
  /// All choices that fit, the most specific first, without duplicates.
  std::vector<KernelChoice> choices(const TuningQuery& query, const DeviceFacts& device) const;
  /// The lines of the entries that fit a device, as they are parsed, in order.
  std::vector<std::string> lines(const DeviceFacts& device) const;
  const std::vector<TuningEntry>& entries() const { return entries_; }
  /// As it is parsed, one line an entry.
  std::string text() const;

 private:
  std::vector<TuningEntry> entries_;
};

/// A device name as the table writes it: blanks become underscores.
std::string table_name(const std::string& device_name);

}  // namespace phonebit::engine::gpu
