// The kernels of bnn_kernels/, embedded at build time: text, tunable parameters and choices of them, assembly
// (bnn_kernels/README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

/// Kernel and values of its tunables; those not named have their defaults.
struct KernelChoice {
  std::string kernel;
  std::vector<std::pair<std::string, int>> parameters;

  /// The value of a tunable: named here, or its default. Throws Error(internal) if the kernel has none of
  /// that name.
  int parameter(const char* name) const;
  /// "bconv2d_tiled TILE_PIXELS=2 TILE_FILTERS=8", as in the tuning table.
  std::string text() const;
  /// The inverse. Throws Error(input) for an unknown kernel, unknown parameter, or a value that the kernel's
  /// @tune line does not list.
  static KernelChoice parse(const std::string& text);
  /// With all tunables written out: equal choices have equal texts.
  std::string full_text() const;
};

/// Texts by their paths in bnn_kernels: "binary/bgemv.cl", "tuning.table".
using KernelFiles = std::map<std::string, std::string, std::less<>>;

/// Expands all files. Throws Error(internal) where they are damaged.
KernelFiles embedded_files();

/// Texts of all *.cl, *.clh and *.table below a folder by their paths in it. Throws Error(input) where it is
/// no folder or a file cannot be read.
KernelFiles read_kernel_folder(const std::string& folder);

/// What the generated source defines: for each file a line "PATH BYTES" and its text, as one raw DEFLATE
/// stream.
extern const uint8_t embedded_stream[];
extern const size_t embedded_stream_size;
extern const size_t embedded_text_size;

}  // namespace phonebit::engine::gpu
