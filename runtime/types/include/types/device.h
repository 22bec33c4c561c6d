// What is known of processors and of the kernels for them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phonebit::engine {

/// One instruction set of this build.
struct IsaInfo {
  std::string name;
  std::string features;
  bool supported;  ///< by this machine
};

/// One GPU, or what its API offers as a device.
struct GpuInfo {
  int index;  ///< in device names: "gpu:0"
  std::string name, platform, vendor, family, version, driver_version;
  bool is_gpu;
  int compute_units, clock_mhz;
  uint64_t global_bytes, local_bytes;
  std::vector<std::pair<std::string, bool>> capabilities;    ///< "images", "half", "command_buffer", ...
  std::vector<std::pair<std::string, std::string>> kernels;  ///< op and shape class, kernel with parameters
  void* id;                                                  ///< OpenCL: cl_device_id
};

/// One kernel variant's self-test.
struct SelfTestResult {
  std::string op, choice;
  bool passed;
  std::string detail;
};

}  // namespace phonebit::engine
