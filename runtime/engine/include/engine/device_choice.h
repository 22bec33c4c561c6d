// The GPU that a network runs on.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"
#include "types/options.h"

namespace phonebit::engine {

/// The caller's device, or the one that `device` names ("auto", "gpu", "vulkan:1"); null where that is the CPU
/// (empty, or "auto" without a GPU). `label` becomes its name. Throws Error(input) and Error(device).
std::shared_ptr<gpu::Device> open_device(const Options& options, const std::string& device,
                                         std::string* label);

}  // namespace phonebit::engine
