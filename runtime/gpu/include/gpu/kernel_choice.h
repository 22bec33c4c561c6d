// Which kernel serves a layer, and with which parameters.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phonebit::engine::gpu {

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

}  // namespace phonebit::engine::gpu
