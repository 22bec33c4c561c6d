// The processors of this machine, and the kernels for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpu/device_facts.h"
#include "types/device.h"
#include "types/options.h"

namespace phonebit::engine {

/// One GPU, or what its API offers as a device.
struct GpuInfo : gpu::DeviceFacts {
  std::string device;                                        ///< its name: "gpu:0", "vulkan:0"
  int index;                                                 ///< among those of its API
  std::vector<std::pair<std::string, bool>> capabilities;    ///< "images", "half", "command_buffer", ...
  std::vector<std::pair<std::string, std::string>> kernels;  ///< op and shape class, kernel with parameters
  void* id;                                                  ///< OpenCL: cl_device_id
};

/// The instruction sets of this build, best first.
std::vector<IsaInfo> instruction_sets();

/// Makes the engine load this OpenCL library instead of the system's; before anything else uses OpenCL.
void use_opencl_library(const std::string& path);

/// The GPUs of this machine, and what else its APIs offer, GPUs first: by `api` ("opencl", "vulkan") alone, or by
/// one after the other where it is empty.
std::vector<GpuInfo> gpu_devices(const std::string& api = "");

/// Why there is none, or empty.
std::string gpu_error(const std::string& api = "");

/// Compares every kernel variant that the device of `options` supports with the CPU backend. `again`:
/// even those with a cached result.
std::vector<SelfTestResult> gpu_self_test(const Options& options, bool again = false);

}  // namespace phonebit::engine
