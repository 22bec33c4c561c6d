// What the name of a device stands for.
#pragma once

#include <string>

#include "kernel_types.h"

namespace phonebit::engine {

/// What "cpu", "gpu:1" or "gpu+cpu:avx2" asks for.
struct DeviceName {
  std::string gpu;  ///< "auto", "gpu", "gpu:...", "vulkan" or "vulkan:..."; empty: the CPU alone
  bool has_cpu;
  std::string isa;  ///< empty: not said
};

/// Throws Error(input) listing the forms that exist.
DeviceName parse_device(const std::string& device);

/// Throws Error(input) listing those forms.
[[noreturn]] void fail_unknown_device(const std::string& device);

/// The instruction set called `name`, or, when that is empty, PHONEBIT_CPU's or the best. Throws
/// Error(device) listing those that exist.
const cpu::Isa& choose_isa(const std::string& name);

}  // namespace phonebit::engine
