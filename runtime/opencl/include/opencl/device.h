// OpenCL devices of this machine.
#pragma once

#include <vector>

#include "gpu/device_facts.h"
#include "opencl/cl_api.h"

namespace phonebit::engine::opencl {

/// A device with its facts.
struct ClDevice : gpu::DeviceFacts {
  cl_platform_id platform;
  cl_device_id id;
};

/// All devices of all platforms that have OpenCL 1.2 and a compiler: GPUs first, then others, simulators
/// last, each in the platforms' order; found once. Empty where there is no OpenCL or no device.
const std::vector<ClDevice>& devices();

/// Facts about any device, for handles that a caller brings along.
ClDevice describe_device(cl_device_id id);

}  // namespace phonebit::engine::opencl
