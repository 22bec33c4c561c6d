// Finds the kernel that serves a layer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/layer.h"
#include "gpu/self_test.h"

namespace phonebit::engine::gpu {

/// The tuning tables that count for the options: the caller's lines, then the built-in table.
TuningTable tuning_table(const Options& options);

/// The tables' choices come first, then every kernel with its default parameters. The first one that can
/// serve, passes the self-test and compiles is chosen.
class KernelChooser {
 public:
  /// `programs` must outlive this.
  KernelChooser(std::shared_ptr<Device> device, ProgramCache& programs, const Options& options);

  /// What the layer asks of a kernel beyond the op's own requirements.
  struct Wish {
    bool has_channel_parts = false;
    int first_channel = 0;  ///< where a part begins
  };
  /// Calls `build` with choices until it does not throw Error(device); returns that choice. Throws
  /// Error(device) saying why none serves.
  KernelChoice choose(const loader::Model& model, const loader::Op& op, const Wish& wish,
                      const std::function<void(const KernelChoice&)>& build);

  /// Choices that were refused, and why.
  const std::vector<std::string>& warnings() const { return warnings_; }
  int self_tests_run() const { return self_test_.tests_run(); }

 private:
  std::string failed_self_test(const loader::Model& model, const loader::Op& op, const KernelChoice& choice,
                               bool has_channel_parts);

  std::shared_ptr<Device> device_;
  Target target_;
  TuningTable table_;
  SelfTest self_test_;
  std::vector<std::string> warnings_;
};

}  // namespace phonebit::engine::gpu
