// The processors of this machine, and the kernels for them.
#pragma once

#include <string>
#include <vector>

#include "types/device.h"
#include "types/options.h"

namespace phonebit::engine {

/// The instruction sets of this build, best first.
std::vector<IsaInfo> instruction_sets();

/// Makes the engine load this OpenCL library instead of the system's; before anything else uses OpenCL.
void use_opencl_library(const std::string& path);

/// The OpenCL devices of this machine, GPUs first; empty where there is no OpenCL.
std::vector<OpenClDeviceInfo> opencl_devices();

/// Why there is no OpenCL device, or empty.
std::string opencl_error();

/// Compares every kernel variant that could serve on the device of `options` with the CPU backend. `again`:
/// even those with a cached result.
std::vector<SelfTestResult> opencl_self_test(const Options& options, bool again = false);

}  // namespace phonebit::engine
