// Finds the kernel that runs a layer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/layer.h"
#include "gpu/self_test.h"

namespace phonebit::engine::gpu {

/// The tuning tables that count for the options: the caller's lines, then the built-in table.
TuningTable tuning_table(const Options& options);

/// The tables' choices come first, then every kernel with its default parameters. The first one that
/// supports the layer, passes the self-test and compiles is chosen.
class KernelChooser {
 public:
  /// `programs` must outlive this.
  KernelChooser(std::shared_ptr<Device> device, ProgramCache& programs, const Options& options);

  /// Calls `build` with choices until it does not throw Error(device); returns that choice. `part_channel`: where
  /// a part of the channels begins. Throws Error(device) saying why there is none.
  KernelChoice choose(const loader::Model& model, const loader::Op& op, std::optional<int> part_channel,
                      const std::function<void(const KernelChoice&)>& build);

  /// Choices that were refused, and why.
  const std::vector<std::string>& warnings() const { return warnings_; }
  int self_tests_run() const { return self_test_.tests_run(); }

 private:
  std::shared_ptr<Device> device_;
  Target target_;
  TuningTable table_;
  SelfTest self_test_;
  std::vector<std::string> warnings_;
};

}  // namespace phonebit::engine::gpu
