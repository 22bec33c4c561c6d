// OpenCL devices and the self-test of kernels.
#pragma once

#include <pybind11/pybind11.h>

namespace phonebit::engine::python {

void define_opencl(pybind11::module_& module);

}  // namespace phonebit::engine::python
