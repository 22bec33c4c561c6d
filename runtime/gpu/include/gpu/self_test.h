// Before a kernel variant is used on a device and driver for the first time, it has to agree with the CPU
// backend.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gpu/binary_store.h"
#include "gpu/device.h"
#include "gpu/kernel_library.h"
#include "gpu/program_cache.h"
#include "types/device.h"
#include "types/options.h"

namespace phonebit::engine::gpu {

/// Runs small random problems of an op through one choice of kernel and parameters, and through the CPU
/// backend. Results are kept on disk by device, driver, kernel text and choice, unless the device failed.
class SelfTest {
 public:
  /// `directory`: empty for no disk cache. Both references must outlive this.
  SelfTest(std::shared_ptr<Device> device, ProgramCache& programs, const std::string& directory);

  /// Whether the choice is right on this device; `has_channel_parts`: in its program for parts of the
  /// channels. An error of the device counts as a failure, and that it ended a process. `again`: do not believe an
  /// old result.
  SelfTestResult result(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                        bool again = false);
  /// Tests that really ran.
  int tests_run() const { return tests_run_; }

 private:
  std::string key(const std::string& op, const KernelChoice& choice, bool has_channel_parts) const;
  /// run(), unless it ended a process before; `again`: even then.
  std::string run_safely(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                         bool again, bool& is_lasting);
  /// "passed", or what is wrong. `is_lasting`: not where the device failed, which it may not do the next time.
  std::string run(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                  bool& is_lasting);

  std::shared_ptr<Device> device_;
  ProgramCache& programs_;
  BinaryStore store_;
  std::map<std::string, SelfTestResult> known_;  // by key
  int tests_run_ = 0;
};

/// Every kernel with the parameters that the tables and its defaults may give it on the context's device.
std::vector<SelfTestResult> test_all_kernels(const std::shared_ptr<Device>& device, const Options& options,
                                             bool again);

}  // namespace phonebit::engine::gpu
