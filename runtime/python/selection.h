// Kernel selection for phonebit/planner.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

/// Defines isa_names, cpu_kernel, gpu_kernel_families and GpuKernels.
void define_selection(pybind11::module_& module);

}  // namespace phonebit::engine::python
