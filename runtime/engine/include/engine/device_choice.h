// What the name of a device stands for.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"
#include "kernel_types.h"
#include "types/options.h"

namespace phonebit::engine {

/// What "cpu", "gpu:1" or "gpu+cpu:avx2" asks for.
struct DeviceName {
  std::string gpu;  ///< "auto", "gpu" or "gpu:..."; empty: the CPU alone
  bool has_cpu;
  std::string isa;  ///< empty: not said
};

/// Throws Error(input) listing the forms that exist.
DeviceName parse_device(const std::string& device);

/// The instruction set called `name`, or, when that is empty, PHONEBIT_CPU's or the best. Throws
/// Error(device) listing those that exist.
const cpu::Isa& choose_isa(const std::string& name);

/// The caller's device, or the one that `device` names ("auto", "gpu", "gpu:1"); null where that is the CPU
/// (empty, or "auto" without a GPU). `label` becomes its name. Throws Error(input) and Error(device).
std::shared_ptr<gpu::Device> open_device(const Options& options, const std::string& device,
                                         std::string* label);

}  // namespace phonebit::engine
