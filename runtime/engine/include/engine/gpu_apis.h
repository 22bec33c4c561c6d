// The APIs through which this build reaches GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "types/options.h"

namespace phonebit::engine {

struct GpuApi {
  const char* name;    ///< "opencl"
  const char* prefix;  ///< of its devices' names: "gpu" of "gpu:1"
  /// GPUs first; found once. Empty where there is none, of which `error` says why.
  std::vector<const gpu::DeviceFacts*> (*devices)();
  std::string (*error)();
  /// Throws Error(device).
  std::shared_ptr<gpu::Device> (*open)(size_t index, Hint hint);
  void* (*id)(size_t index);  ///< the API's own name of a device, or null
};

/// In the order in which "auto" and "gpu" look for a GPU.
const std::vector<GpuApi>& gpu_apis();

}  // namespace phonebit::engine
