// What a network on two processors begins with: its plan, and how they share memory and wait for each other.
#pragma once

#include <string>
#include <vector>

#include "gpu/device_facts.h"
#include "loader/model.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

struct Setup {
  /// The plan is options.plan, or the model's own for `plan_key`, or all layers on the GPU. Throws
  /// Error(device) for what the device cannot, Error(input) for a plan that does not fit the model.
  Setup(const loader::Model& model, const gpu::DeviceFacts& device, const std::string& plan_key,
        const Options& options);

  /// Those that are not there already.
  void add_warnings(const std::vector<std::string>& more);
  /// After a failure of polling, or in place of it.
  void wait_by_events(const std::string& label, const char* reason);

  ExecutionPlan plan;
  bool uses_gpu;     ///< whether the plan does
  bool is_compared;  ///< whether auto-selection compares it with either processor: Options::trial
  Sharing sharing;
  Synchronization synchronization;
  std::vector<std::string> warnings;
};

}  // namespace phonebit::engine::coexec
