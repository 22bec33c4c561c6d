// The kernels of bnn_kernels/, embedded at build time: text, tunable parameters, assembly
// (bnn_kernels/README.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phonebit::engine::gpu {

/// One `@tune` line.
struct Tunable {
  std::string name;
  std::vector<int> values;  ///< that a tuner tries
  int default_value;
};

/// Macro names and values, in the order in which they are defined.
class Defines {
 public:
  void set(const char* name, std::string value);
  void set(const char* name, int value);
  const std::vector<std::pair<std::string, std::string>>& all() const { return all_; }
  /// The value of a define, or null.
  const std::string* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

/// Whether there is a kernel. A library for phones has none of tensor cores (CMakeLists.txt).
bool has_kernel(std::string_view kernel);
/// Throws Error(internal) for an unknown kernel.
const std::vector<Tunable>& tunables(std::string_view kernel);
/// The text of tuning.table.
std::string_view built_in_tuning_table();
/// The kernel file as it is, includes unreplaced. Throws Error(internal) for an unknown kernel.
std::string_view kernel_text(std::string_view kernel);
/// Program text: `#define` lines, then the kernel file with includes replaced. Tunables that `defines` lacks
/// have their defaults.
std::string assemble(std::string_view kernel, const Defines& defines);

}  // namespace phonebit::engine::gpu
